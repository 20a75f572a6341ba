"""The credits of one account: give some for a payment, correct the balance, and what has changed it."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from msgspec import Struct
from starlette.responses import Response

from tarazu.panel.acting import act
from tarazu.panel.forms import Form
from tarazu.panel.messages import told
from tarazu.panel.visits import Visit
from tarazu.service.back_office import BackOffice
from tarazu.service.provisioning import Provisioning
from tarazu.service.provisioning_errors import ProvisioningError

PAGE_LENGTH = 25


class CreditWish(Struct, frozen=True, kw_only=True):
    """What somebody has written into one of the two forms, as it was written. `why` is the note or the reason."""

    credits: str = ""
    reference: str = ""
    why: str = ""
    refusal: str | None = None

    @classmethod
    def of(cls, form: Form, refusal: str) -> "CreditWish":
        """Read it."""
        return cls(
            credits=form.text("credits"), reference=form.text("reference"), why=form.text("why"), refusal=refusal
        )


class AccountCreditsPages:
    """The page of an account's credits."""

    def __init__(self, office: BackOffice) -> None:
        self._office = office

    async def show(self, visit: Visit) -> Response:
        """Show balance, forms and changes, the newest first."""
        return await self._show(visit)

    async def add(self, visit: Visit) -> Response:
        """Add credits that were paid for, once for each reference."""
        account_id, form = visit.request.path_params["account_id"], visit.form

        def add(books: Provisioning, credits_: int) -> tuple[Any, bool]:
            note = form.text("why").strip() or None
            return books.add_credit(account_id, credits_, reference=form.text("reference"), note=note)

        try:
            is_new = await self._change(visit, add)
        except ProvisioningError as error:
            return await self._show(visit, topup=CreditWish.of(form, told(error, visit.formats)))
        return visit.done(f"/accounts/{account_id}/credits", "credits-added" if is_new else "credits-added-before")

    async def correct(self, visit: Visit) -> Response:
        """Correct the balance, up or down; once, where there is a reference."""
        account_id, form = visit.request.path_params["account_id"], visit.form

        def correct(books: Provisioning, credits_: int) -> tuple[Any, bool]:
            reference = form.text("reference").strip() or None
            return books.adjust_credit(account_id, credits_, reason=form.text("why"), reference=reference)

        try:
            is_new = await self._change(visit, correct)
        except ProvisioningError as error:
            return await self._show(visit, correction=CreditWish.of(form, told(error, visit.formats)))
        return visit.done(f"/accounts/{account_id}/credits", "corrected" if is_new else "corrected-before")

    async def _change(self, visit: Visit, change: Callable[[Provisioning, int], tuple[Any, bool]]) -> bool:
        """Do it; tell whether it has changed the balance now, and not before."""
        credits_ = visit.form.whole_number("number of credits", "credits")
        if credits_ is None:
            raise ProvisioningError("Write how many credits.")
        _, is_new = await act(self._office, visit, lambda books: change(books, credits_))
        return is_new

    async def _show(
        self, visit: Visit, *, topup: CreditWish | None = None, correction: CreditWish | None = None
    ) -> Response:
        account_id, before = visit.request.path_params["account_id"], visit.query("before") or None
        found = await act(
            self._office,
            visit,
            lambda books: books.credit_history(account_id, limit=PAGE_LENGTH, before=before),
        )
        return visit.page(
            "operators/account_credits.html",
            HTTPStatus.OK if topup is None and correction is None else HTTPStatus.UNPROCESSABLE_ENTITY,
            account=found.account,
            found=found,
            is_first=before is None,
            topup=topup or CreditWish(),
            correction=correction or CreditWish(),
        )
