"""The credits of one account: give some for a payment, correct the balance, and what has changed it."""

from collections.abc import Callable

from starlette.responses import Response

from tarazu.panel.acting import act
from tarazu.panel.visits import Visit
from tarazu.service.back_office import BackOffice
from tarazu.service.provisioning import Provisioning
from tarazu.service.provisioning_errors import ProvisioningError
from tarazu.store.adjustments import Adjustment
from tarazu.store.topups import Topup

PAGE_LENGTH = 25


class AccountCreditsPages:
    """The page of an account's credits."""

    def __init__(self, office: BackOffice) -> None:
        self._office = office

    async def show(self, visit: Visit) -> Response:
        """Show balance, forms and changes, the newest first."""
        account_id, before = visit.part("account_id"), visit.query("before") or None
        found = await act(
            self._office,
            visit,
            lambda books: books.credit_history(account_id, limit=PAGE_LENGTH, before=before),
        )
        return visit.page("operators/account_credits.html", account=found.account, found=found, is_first=before is None)

    async def add(self, visit: Visit) -> Response:
        """Add credits that were paid for, once for each reference."""
        account_id, form = visit.part("account_id"), visit.form

        def add(books: Provisioning, credits_: int) -> tuple[Topup, bool]:
            note = form.text("why").strip() or None
            return books.add_credit(account_id, credits_, reference=form.text("reference"), note=note)

        return await self._change(visit, add, "credits-added")

    async def correct(self, visit: Visit) -> Response:
        """Correct the balance, up or down; once, where there is a reference."""
        account_id, form = visit.part("account_id"), visit.form

        def correct(books: Provisioning, credits_: int) -> tuple[Adjustment, bool]:
            reference = form.text("reference").strip() or None
            return books.adjust_credit(account_id, credits_, reason=form.text("why"), reference=reference)

        return await self._change(visit, correct, "corrected")

    async def _change(
        self, visit: Visit, change: Callable[[Provisioning, int], tuple[Topup | Adjustment, bool]], notice: str
    ) -> Response:
        """Do it, and say how many credits it was, what the balance is now, and where it was done before."""
        account_id, credits_ = visit.part("account_id"), visit.form.whole_number("number of credits", "credits")
        if credits_ is None:
            raise ProvisioningError("Write how many credits.")

        def do(books: Provisioning) -> tuple[int, bool, int]:
            recorded, is_new = change(books, credits_)
            return recorded.credits, is_new, books.account(account_id).balance

        done, is_new, balance = await act(self._office, visit, do)
        path = f"/accounts/{account_id}/credits"
        return visit.done(path, notice if is_new else f"{notice}-before", credits=done, balance=balance)
