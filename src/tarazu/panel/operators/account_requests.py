"""The requests of one account, without their content, the newest first."""

from starlette.responses import Response

from tarazu.panel.holders.history import show_requests
from tarazu.panel.visits import Visit
from tarazu.service.back_office import BackOffice


class AccountRequestsPages:
    """The page of an account's requests."""

    def __init__(self, office: BackOffice) -> None:
        self._office = office

    async def show(self, visit: Visit) -> Response:
        """Show a page of those that are looked for, or the one that is asked for."""
        account_id = visit.part("account_id")
        return await show_requests(self._office, visit, account_id, "operators/account_requests.html")
