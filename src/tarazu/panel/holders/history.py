"""The account's requests, without their content: the newest first, those that are looked for, or one by its id."""

from http import HTTPStatus

from msgspec import Struct
from sqlalchemy import Connection
from starlette.responses import Response

from tarazu.domain.accounts import Account, Key
from tarazu.panel.history_filters import KEYS_OFFERED_MAX, choices, read_narrowed
from tarazu.panel.visits import Visit
from tarazu.service.back_office import BackOffice
from tarazu.service.finding import existing_account, keys_page
from tarazu.service.reports import History, history, history_of_one

PAGE_LENGTH = 25


class Page(Struct, frozen=True, kw_only=True):
    """A page of requests, and what may be chosen from."""

    account: Account
    found: History
    keys: tuple[Key, ...]


class HistoryPages:
    """The page of requests. A request of another account does not exist here."""

    def __init__(self, office: BackOffice) -> None:
        self._office = office

    async def show(self, visit: Visit) -> Response:
        """Show a page of the requests that are looked for, or the one that is asked for."""
        return await show_requests(self._office, visit, visit.someone.id, "history.html")


async def show_requests(office: BackOffice, visit: Visit, account_id: str, template: str) -> Response:
    """Show a page of an account's requests by a template: those that are looked for, or the one that is asked for.

    Raises:
        NotThereError: there is no such account, or it has no request to go on after.
    """
    wanted, before = visit.query("id").strip(), visit.query("before")
    narrowed, zone = read_narrowed(visit, office.clock()), visit.formats.zone

    def look(connection: Connection) -> Page:
        account = existing_account(connection, account_id)
        keys = keys_page(connection, account_id, limit=KEYS_OFFERED_MAX, after=None).keys
        if wanted:
            return Page(account=account, found=history_of_one(connection, account_id, wanted), keys=keys)
        found = history(connection, account_id, zone, limit=PAGE_LENGTH, before=before or None, sought=narrowed.sought)
        return Page(account=account, found=found, keys=keys)

    page = await office.look(look)
    status = HTTPStatus.OK if page.found.entries or not wanted else HTTPStatus.NOT_FOUND
    return visit.page(
        template,
        status,
        account=page.account,
        found=page.found,
        wanted=wanted,
        is_first=not before,
        narrowed=narrowed,
        choices=choices(page.account, page.keys, office.catalogue, narrowed, visit.formats),
    )
