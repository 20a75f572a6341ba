"""Open accounts, issue keys, add credits, switch intake, and all else that operators and holders do to the books.

Every act is one transaction. What is wrong with it is a ProvisioningError, whose message is for the person who asked.
"""

from tarazu.domain.accounts import Intake
from tarazu.service.account_acts import AccountActs
from tarazu.service.admin_token_acts import AdminTokenActs
from tarazu.service.checks import (
    HISTORY_LENGTH,
    checked_length,
)
from tarazu.service.credit_acts import CreditActs
from tarazu.service.finding import existing_request
from tarazu.service.key_acts import KeyActs
from tarazu.service.people_acts import PeopleActs
from tarazu.service.provisioning_errors import ProvisioningError
from tarazu.service.trails import Trail, TrailFilter, trail_page
from tarazu.store.intake import read_intake, write_intake
from tarazu.store.request_history import RequestRow

RETRY_AFTER_S_MAX = 86_400


AUDITED = "books.audit"


class Provisioning(AccountActs, KeyActs, CreditActs, PeopleActs, AdminTokenActs):
    """The acts on one set of books of whoever `by` names, of all kinds."""

    def stop_intake(self, *, retry_after_s: int = Intake().retry_after_s) -> Intake:
        """Refuse all completions from now on, everywhere.

        Raises:
            ProvisioningError: `retry_after_s` is out of bounds.
        """
        if not 1 <= retry_after_s <= RETRY_AFTER_S_MAX:
            raise ProvisioningError(
                "The retry time must be 1 to {most} seconds.", member="retry_after_s", most=RETRY_AFTER_S_MAX
            )
        return self._switch(Intake(stopped=True, retry_after_s=retry_after_s), "intake.stop")

    def resume_intake(self) -> Intake:
        """Take completions again."""
        return self._switch(Intake(), "intake.resume")

    def intake(self) -> Intake:
        """Tell how the switch stands."""
        with self._reading() as connection:
            return read_intake(connection)

    def record_audit(self, *, differences: int) -> None:
        """Put into the trail that the books were audited, and how many differences were found."""
        with self._transaction() as connection:
            self._record(connection, AUDITED, None, differences=differences)

    def request(self, request_id: str) -> RequestRow:
        """Show one request, by its id or by the `X-Request-Id` of its answer.

        Raises:
            ProvisioningError: there is no such request.
        """
        with self._reading() as connection:
            return existing_request(connection, request_id)

    def trail(self, *, limit: int = HISTORY_LENGTH, account_id: str | None = None, before: str | None = None) -> Trail:
        """List what was done, newest first: at most `limit` acts, of one account if given, before the act `before`.

        Raises:
            ProvisioningError: `limit` is out of bounds, or there is no such account or act.
        """
        checked_length(limit)
        with self._reading() as connection:
            return trail_page(connection, TrailFilter(account_id=account_id), limit=limit, before=before)

    def _switch(self, switch: Intake, act: str) -> Intake:
        with self._transaction() as connection:
            write_intake(connection, switch)
            self._record(connection, act, None, **({"retry_after_s": switch.retry_after_s} if switch.stopped else {}))
        return switch
