"""What has changed the balance beside requests: top-ups and corrections."""

from starlette.responses import Response

from tarazu.panel.acting import act
from tarazu.panel.visits import Visit
from tarazu.service.back_office import BackOffice

PAGE_LENGTH = 25


class CreditPages:
    """The page of an account's credits."""

    def __init__(self, office: BackOffice) -> None:
        self._office = office

    async def show(self, visit: Visit) -> Response:
        """Show balance and changes, the newest first."""
        before = visit.query("before") or None
        history = await act(
            self._office,
            visit,
            lambda books: books.credit_history(visit.someone.id, limit=PAGE_LENGTH, before=before),
        )
        return visit.page("credits.html", history=history, is_first=before is None)
