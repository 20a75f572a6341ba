"""The accounts of the shop: search, list, and open a new one."""

from http import HTTPStatus

from msgspec import Struct
from starlette.responses import Response

from tarazu.domain.accounts import AccountStatus
from tarazu.panel.acting import act
from tarazu.panel.forms import Form
from tarazu.panel.messages import told
from tarazu.panel.operators.choices import plan_choices, read_status, status_choices
from tarazu.panel.visits import Visit
from tarazu.service.back_office import BackOffice
from tarazu.service.provisioning_errors import ProvisioningError

PAGE_LENGTH = 25


class AccountWish(Struct, frozen=True, kw_only=True):
    """What somebody has written into the form, as it was written."""

    name: str = ""
    email: str = ""
    plan: str = ""
    status: str = AccountStatus.ACTIVE.value

    @classmethod
    def of(cls, form: Form) -> "AccountWish":
        """Read it."""
        return cls(name=form.text("name"), email=form.text("email"), plan=form.text("plan"), status=form.text("status"))


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
        return self._form(visit, AccountWish())

    async def create(self, visit: Visit) -> Response:
        """Open an account, and go on to its page."""
        wish = AccountWish.of(visit.form)
        status = read_status(wish.status)
        try:
            account = await act(
                self._office,
                visit,
                lambda books: books.create_account(
                    name=wish.name, email=wish.email.strip() or None, plan=wish.plan or None, status=status
                ),
            )
        except ProvisioningError as error:
            return self._form(visit, wish, HTTPStatus.UNPROCESSABLE_ENTITY, told(error, visit.formats))
        return visit.done(f"/accounts/{account.id}", "account-opened")

    def _form(
        self, visit: Visit, wish: AccountWish, status: int = HTTPStatus.OK, refusal: str | None = None
    ) -> Response:
        return visit.page(
            "operators/account_new.html",
            status,
            wish=wish,
            refusal=refusal,
            plans=plan_choices(self._office.catalogue, visit.formats),
            statuses=status_choices(visit.formats),
        )

    @property
    def _plans(self) -> frozenset[str]:
        return frozenset(self._office.catalogue.plans)
