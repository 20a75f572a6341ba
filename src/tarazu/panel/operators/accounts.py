"""The accounts of the shop: search, list, and open a new one."""

from enum import StrEnum
from typing import TypeVar

from starlette.responses import Response

from tarazu.domain.accounts import Account, AccountStatus
from tarazu.domain.catalogue import NO_PLAN
from tarazu.panel.acting import act
from tarazu.panel.downloads import send_csv
from tarazu.panel.forms import Form
from tarazu.panel.messages import later, translations
from tarazu.panel.operators.account import show_invitation
from tarazu.panel.operators.choices import plan_choices, read_status, status_choices
from tarazu.panel.visits import Visit
from tarazu.service.back_office import BackOffice
from tarazu.service.csv_files import accounts_csv
from tarazu.service.people_acts import Invitation
from tarazu.service.provisioning import Provisioning
from tarazu.service.provisioning_errors import ProvisioningError
from tarazu.store.accounts import AccountOrder, Sought

ChoiceType = TypeVar("ChoiceType", bound=StrEnum)

ORDERS = {
    AccountOrder.NEWEST: later("newest first"),
    AccountOrder.OLDEST: later("oldest first"),
    AccountOrder.NAME: later("by name"),
    AccountOrder.USED: later("most used first"),
    AccountOrder.BALANCE: later("highest balance first"),
}


_NEEDS_EMAIL = later("An invitation needs an email. Write one, or create the account alone.")
_NOT_BLOCKED = later("A blocked account cannot be invited. Choose another status, or create it alone.")


class AccountsPages:
    """The list of accounts, and the form that opens one. `base_url` is where browsers reach the service."""

    def __init__(self, office: BackOffice, base_url: str) -> None:
        self._office = office
        self._base_url = base_url

    async def list(self, visit: Visit) -> Response:
        """List the accounts that are looked for, a page at a time."""
        search, plan, sought = visit.query("search").strip(), visit.query("plan"), _sought(visit)
        status, order = sought.status, _known(AccountOrder, visit.query("order"))
        found = await act(
            self._office,
            visit,
            lambda books: books.account_list(sought, order or AccountOrder.NEWEST, page=visit.number("page")),
        )
        gettext = translations(visit.formats.language).gettext
        query = {"search": search, "plan": plan, "status": status or "", "order": order or ""}
        (none, *named) = plan_choices(self._office.catalogue, visit.formats, None if plan in {"", NO_PLAN} else plan)
        return visit.page(
            "operators/accounts.html",
            found=found,
            query=query,
            is_narrowed=bool(search or plan or status),
            plans=self._plans,
            plan_filter=[("", gettext("any plan")), (NO_PLAN, none[1]), *named],
            status_filter=[("", gettext("any status")), *status_choices(visit.formats)],
            orders=[(order.value, gettext(text)) for order, text in ORDERS.items()],
        )

    async def download(self, visit: Visit) -> Response:
        """Send the accounts that are looked for as a file."""
        file = accounts_csv(self._office.catalogue, self._office.clock(), _sought(visit))
        return await send_csv(self._office, "accounts", file)

    async def ask(self, visit: Visit) -> Response:
        """Ask for what a new account is to be."""
        return visit.page(
            "operators/account_new.html",
            plans=plan_choices(self._office.catalogue, visit.formats),
            statuses=status_choices(visit.formats),
        )

    async def create(self, visit: Visit) -> Response:
        """Open an account, and go on to its page."""
        account = await act(self._office, visit, lambda books: _create(books, visit.form))
        return visit.done(f"/accounts/{account.id}", "account-opened")

    async def create_and_invite(self, visit: Visit) -> Response:
        """Open an account, make an invitation, and show its link once."""
        if not visit.form.text("email").strip():
            raise ProvisioningError(_NEEDS_EMAIL, member="email")
        if read_status(visit.form.text("status")) is AccountStatus.BLOCKED:
            raise ProvisioningError(_NOT_BLOCKED, member="status")

        def create(books: Provisioning) -> tuple[str, Invitation]:
            account = _create(books, visit.form)
            return account.id, books.invite_holder(account.id)

        account_id, invitation = await act(self._office, visit, create)
        return show_invitation(visit, account_id, invitation, self._base_url)

    @property
    def _plans(self) -> frozenset[str]:
        return frozenset(self._office.catalogue.plans)


def _create(books: Provisioning, form: Form) -> Account:
    name, email, plan = (form.text(field) for field in ("name", "email", "plan"))
    status = read_status(form.text("status"))
    return books.create_account(name=name, email=email.strip() or None, plan=plan or None, status=status)


def _sought(visit: Visit) -> Sought:
    """Read which accounts the address asks for."""
    status = _known(AccountStatus, visit.query("status"))
    return Sought(text=visit.query("search").strip(), plan=_plan_of(visit.query("plan")), status=status)


def _known(choices: type[ChoiceType], text: str) -> ChoiceType | None:
    """Read a choice of an address; what is none counts as not given."""
    return next((choice for choice in choices if choice.value == text), None)


def _plan_of(text: str) -> str | None:
    """Read the plan of an address as `Sought` has it: without one any, and by its word that of none."""
    return "" if text == NO_PLAN else text or None
