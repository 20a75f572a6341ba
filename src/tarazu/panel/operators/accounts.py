"""The accounts of the shop: search, list, and open a new one."""

from starlette.responses import Response

from tarazu.panel.acting import act
from tarazu.panel.operators.choices import plan_choices, read_status, status_choices
from tarazu.panel.visits import Visit
from tarazu.service.back_office import BackOffice

PAGE_LENGTH = 25


class AccountsPages:
    """The list of accounts, and the form that opens one."""

    def __init__(self, office: BackOffice) -> None:
        self._office = office

    async def list(self, visit: Visit) -> Response:
        """List accounts, all or those that are searched for, the newest first."""
        search, after = visit.query("search").strip(), visit.query("after") or None
        found = await act(
            self._office,
            visit,
            lambda books: books.accounts_page(search=search, limit=PAGE_LENGTH, after=after),
        )
        return visit.page(
            "operators/accounts.html", found=found, search=search, is_first=after is None, plans=self._plans
        )

    async def ask(self, visit: Visit) -> Response:
        """Ask for what a new account is to be."""
        return visit.page(
            "operators/account_new.html",
            plans=plan_choices(self._office.catalogue, visit.formats),
            statuses=status_choices(visit.formats),
        )

    async def create(self, visit: Visit) -> Response:
        """Open an account, and go on to its page."""
        name, email, plan = (visit.form.text(field) for field in ("name", "email", "plan"))
        status = read_status(visit.form.text("status"))
        account = await act(
            self._office,
            visit,
            lambda books: books.create_account(
                name=name, email=email.strip() or None, plan=plan or None, status=status
            ),
        )
        return visit.done(f"/accounts/{account.id}", "account-opened")

    @property
    def _plans(self) -> frozenset[str]:
        return frozenset(self._office.catalogue.plans)
