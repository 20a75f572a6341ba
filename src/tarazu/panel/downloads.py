"""An account's requests, credits and usage as files, for the holder and for operators: sent as they are read."""

from collections.abc import AsyncIterator, Callable
from functools import partial
from http import HTTPStatus

from sqlalchemy import Connection
from starlette.exceptions import HTTPException
from starlette.responses import Response, StreamingResponse

from tarazu.domain.calendar import day_of
from tarazu.panel.history_filters import read_narrowed
from tarazu.panel.ranges import read_days, read_span
from tarazu.panel.visits import Visit
from tarazu.service.back_office import BackOffice
from tarazu.service.csv_files import BYTE_ORDER_MARK, CsvFile, CsvPart, credits_csv, csv_text, requests_csv, usage_csv
from tarazu.service.provisioning_errors import ProvisioningError


class Downloads:
    """The files of one account: of whom, tells `account_id`. With `with_who` they say which operator did something."""

    def __init__(self, office: BackOffice, account_id: Callable[[Visit], str], *, with_who: bool = False) -> None:
        self._office = office
        self._account_id = account_id
        self._with_who = with_who

    async def requests(self, visit: Visit) -> Response:
        """Send the requests that the address asks for, as the page of them does."""
        narrowed = read_narrowed(visit, self._office.clock())
        if narrowed.refusal is not None:
            raise HTTPException(HTTPStatus.BAD_REQUEST)
        return await send_csv(
            self._office, "requests", requests_csv(self._account_id(visit), visit.formats.zone, narrowed.sought)
        )

    async def credits(self, visit: Visit) -> Response:
        """Send the top-ups and corrections of the days that are asked for, or all."""
        first, last = self._span(visit)
        zone = visit.formats.zone
        return await send_csv(
            self._office, "credits", credits_csv(self._account_id(visit), zone, first, last, with_who=self._with_who)
        )

    async def usage(self, visit: Visit) -> Response:
        """Send the usage of the days that are asked for, as the overview does, or of any number of days."""
        first, last = self._span(visit)
        if first is last is None:
            days = read_days(visit.query("range"), "", "", self._today(visit)).days
            first, last = days.first, days.last
        return await send_csv(self._office, "usage", usage_csv(self._account_id(visit), first, last))

    def _span(self, visit: Visit) -> tuple[str | None, str | None]:
        try:
            return read_span(visit.query("from"), visit.query("until"), self._today(visit))
        except ProvisioningError:
            raise HTTPException(HTTPStatus.BAD_REQUEST) from None

    def _today(self, visit: Visit) -> str:
        return day_of(self._office.clock(), visit.formats.zone)


async def send_csv(office: BackOffice, name: str, file: CsvFile) -> Response:
    """Send a file. What is wrong with it at once is answered as on any page; what fails later breaks it off."""
    part = await office.look(lambda connection: file.read(connection, None))

    async def parts() -> AsyncIterator[str]:
        yield BYTE_ORDER_MARK + csv_text([file.head, *part.lines])
        after = part.after
        while after is not None:
            further = await office.look(partial(_further, file, after))
            after = further.after
            yield csv_text(further.lines)

    headers = {"content-disposition": f'attachment; filename="tarazu-{name}.csv"'}
    return StreamingResponse(parts(), media_type="text/csv", headers=headers)


def _further(file: CsvFile, after: object, connection: Connection) -> CsvPart:
    return file.read(connection, after)
