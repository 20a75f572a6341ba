"""The requests of one account, without their content, the newest first."""

from http import HTTPStatus

from sqlalchemy import Connection
from starlette.responses import Response

from tarazu.domain.accounts import Account
from tarazu.panel.visits import Visit
from tarazu.service.back_office import BackOffice
from tarazu.service.finding import existing_account
from tarazu.service.reports import History, history, history_of_one

PAGE_LENGTH = 25


class AccountRequestsPages:
    """The page of an account's requests."""

    def __init__(self, office: BackOffice) -> None:
        self._office = office

    async def show(self, visit: Visit) -> Response:
        """Show a page of them, or the one that is asked for."""
        account_id, before = visit.part("account_id"), visit.query("before") or None
        zone, now_ms, wanted = visit.formats.zone, self._office.clock(), visit.query("id").strip()

        def look(connection: Connection) -> tuple[Account, History]:
            account = existing_account(connection, account_id)
            if wanted:
                return account, history_of_one(connection, account_id, wanted)
            return account, history(connection, account_id, zone, now_ms, limit=PAGE_LENGTH, before=before)

        account, found = await self._office.look(look)
        return visit.page(
            "operators/account_requests.html",
            HTTPStatus.OK if found.entries or not wanted else HTTPStatus.NOT_FOUND,
            account=account,
            found=found,
            wanted=wanted,
            is_first=before is None,
        )
