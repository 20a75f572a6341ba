"""The requests of one account, without their content, the newest first."""

from sqlalchemy import Connection
from starlette.responses import Response

from tarazu.domain.accounts import Account
from tarazu.panel.visits import Visit
from tarazu.service.back_office import BackOffice
from tarazu.service.finding import existing_account
from tarazu.service.reports import History, history

PAGE_LENGTH = 25


class AccountRequestsPages:
    """The page of an account's requests."""

    def __init__(self, office: BackOffice) -> None:
        self._office = office

    async def show(self, visit: Visit) -> Response:
        """Show a page of them."""
        account_id, before = visit.request.path_params["account_id"], visit.query("before") or None
        zone, now_ms = visit.formats.zone, self._office.clock()

        def look(connection: Connection) -> tuple[Account, History]:
            found = history(connection, account_id, zone, now_ms, limit=PAGE_LENGTH, before=before)
            return existing_account(connection, account_id), found

        account, found = await self._office.look(look)
        return visit.page("operators/account_requests.html", account=account, found=found, is_first=before is None)
