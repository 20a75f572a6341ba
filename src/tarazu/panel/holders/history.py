"""The account's requests, without their content: the newest first, by month, or one by its id."""

from http import HTTPStatus

from starlette.responses import Response

from tarazu.panel.messages import told
from tarazu.panel.visits import Visit
from tarazu.service.back_office import BackOffice
from tarazu.service.provisioning_errors import NotThereError, ProvisioningError
from tarazu.service.reports import History, history, history_entry

PAGE_LENGTH = 25


class HistoryPages:
    """The page of requests. A request of another account does not exist here."""

    def __init__(self, office: BackOffice) -> None:
        self._office = office

    async def show(self, visit: Visit) -> Response:
        """Show a page of requests, or the one that is asked for."""
        wanted = visit.query("id").strip()
        if wanted:
            return await self._find(visit, wanted)
        month, before = visit.query("month"), visit.query("before")
        try:
            found = await self._history(visit, month or None, before or None)
        except NotThereError:
            raise
        except ProvisioningError as error:  # a month that is none
            return _page(visit, await self._history(visit, None, None), refusal=told(error, visit.formats))
        return _page(visit, found, month=month, is_first=not before)

    async def _find(self, visit: Visit, request_id: str) -> Response:
        try:
            entry = await self._office.look(lambda connection: history_entry(connection, visit.someone.id, request_id))
        except NotThereError:
            found = await self._history(visit, None, None)
            nothing = History(entries=(), more=False, months=found.months)
            return _page(visit, nothing, HTTPStatus.NOT_FOUND, wanted=request_id)
        found = await self._history(visit, None, None)
        return _page(visit, History(entries=(entry,), more=False, months=found.months), wanted=request_id)

    async def _history(self, visit: Visit, month: str | None, before: str | None) -> History:
        zone, now_ms = visit.formats.zone, self._office.clock()
        return await self._office.look(
            lambda connection: history(
                connection, visit.someone.id, zone, now_ms, limit=PAGE_LENGTH, before=before, month=month
            )
        )


def _page(
    visit: Visit,
    found: History,
    status: int = HTTPStatus.OK,
    *,
    month: str = "",
    wanted: str = "",
    is_first: bool = True,
    refusal: str | None = None,
) -> Response:
    return visit.page(
        "history.html", status, found=found, month=month, wanted=wanted, is_first=is_first, refusal=refusal
    )
