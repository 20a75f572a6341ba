"""Add credits to balances, correct them, and tell what has changed them."""

from tarazu.domain.credits import BALANCE_MAX
from tarazu.service.acting import Acting
from tarazu.service.checks import (
    HISTORY_LENGTH,
    checked_length,
    checked_text,
)
from tarazu.service.crediting import (
    REFERENCE_LENGTH_MAX,
    TEXT_LENGTH_MAX,
    CreditHistory,
    checked_amount,
    record_adjustment,
    record_topup,
)
from tarazu.service.finding import existing_account
from tarazu.service.identifiers import new_adjustment_id, new_topup_id
from tarazu.service.provisioning_errors import NotThereError
from tarazu.store.adjustments import Adjustment
from tarazu.store.credit_history import credit_changes
from tarazu.store.topups import Topup


class CreditActs(Acting):
    """The acts on balances."""

    def add_credit(
        self, account_id: str, credits_: int, *, reference: str, note: str | None = None
    ) -> tuple[Topup, bool]:
        """Add credits to a balance, once for each reference; tell also whether it was added just now.

        The same reference again, for the same account and amount, answers with the first top-up and adds nothing.

        Raises:
            ProvisioningError: no such account, an amount that is not positive, a balance that would be too large, a
                reference used for something else, nobody who does it.
        """
        topup = Topup(
            id=new_topup_id(),
            account_id=account_id,
            credits=checked_amount(credits_, least=1),
            reference=checked_text("reference", reference, REFERENCE_LENGTH_MAX),
            note=None if note is None else checked_text("note", note, TEXT_LENGTH_MAX),
            made_by=self._made_by(),
            created_at_ms=self._clock(),
        )
        with self._transaction() as connection:
            existing_account(connection, account_id)
            recorded, is_new = record_topup(connection, topup)
            if is_new:
                detail = {"credits": topup.credits, "reference": topup.reference}
                self._record(connection, "credit.add", account_id, topup.id, **detail)
        return recorded, is_new

    def adjust_credit(
        self, account_id: str, credits_: int, *, reason: str, reference: str | None = None
    ) -> tuple[Adjustment, bool]:
        """Correct a balance, up or down; tell also whether it was done just now.

        With a reference it is done once, as a top-up is; without, each time.

        Raises:
            ProvisioningError: no such account, no reason, an amount of 0, a balance that would be below zero or too
                large, a reference used for something else, nobody who does it.
        """
        adjustment = Adjustment(
            id=new_adjustment_id(),
            account_id=account_id,
            credits=checked_amount(credits_, least=-BALANCE_MAX),
            reason=checked_text("reason", reason, TEXT_LENGTH_MAX),
            reference=None if reference is None else checked_text("reference", reference, REFERENCE_LENGTH_MAX),
            made_by=self._made_by(),
            created_at_ms=self._clock(),
        )
        with self._transaction() as connection:
            existing_account(connection, account_id)
            recorded, is_new = record_adjustment(connection, adjustment)
            if is_new:
                detail = {"credits": adjustment.credits, "reason": adjustment.reason}
                self._record(connection, "credit.adjust", account_id, adjustment.id, **detail)
        return recorded, is_new

    def credit_history(
        self, account_id: str, *, limit: int = HISTORY_LENGTH, before: str | None = None
    ) -> CreditHistory:
        """List what has changed a balance beside requests, newest first: at most `limit`, older than `before` if given.

        Raises:
            ProvisioningError: no such account, it has no change with the id `before`, or `limit` is out of bounds.
        """
        checked_length(limit)
        with self._reading() as connection:
            (account,) = self._on_this_page(connection, [existing_account(connection, account_id)])
            try:
                found = credit_changes(connection, account_id, limit=limit + 1, before=before)
            except LookupError:
                raise NotThereError(
                    "{account} has no change {change!r}.",
                    hint=f"List them with: tarazu credit history {account_id}",
                    account=account_id,
                    change=before,
                ) from None
        return CreditHistory(account=account, changes=tuple(found[:limit]), more=len(found) > limit)
