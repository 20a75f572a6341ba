"""What was used, and what is left: the first page."""

from msgspec import Struct
from sqlalchemy import Connection
from starlette.responses import Response

from tarazu.domain.accounts import Intake
from tarazu.domain.calendar import day_of
from tarazu.panel.asked_days import days_of, days_query
from tarazu.panel.ranges import offered_days
from tarazu.panel.usage_bars import drawn
from tarazu.panel.visits import Visit
from tarazu.service.back_office import BackOffice
from tarazu.service.reports import Overview, overview
from tarazu.store.intake import read_intake
from tarazu.store.keys import has_keys


class Glance(Struct, frozen=True, kw_only=True):
    """All that the first page shows, of one moment."""

    overview: Overview
    intake: Intake
    has_keys: bool


class OverviewPages:
    """The first page of an account."""

    def __init__(self, office: BackOffice) -> None:
        self._office = office

    async def show(self, visit: Visit) -> Response:
        """Show the account as it stands now, and its usage in the days that are asked for."""
        now_ms = self._office.clock()
        today = day_of(now_ms, self._office.catalogue.zone)
        shown, refusal = days_of(visit, today)

        def look(connection: Connection) -> Glance:
            account_id = visit.someone.id
            return Glance(
                overview=overview(connection, account_id, self._office.catalogue, now_ms, shown.days),
                intake=read_intake(connection),
                has_keys=has_keys(connection, account_id),
            )

        glance = await self._office.look(look)
        return visit.page(
            "overview.html",
            glance=glance,
            drawn=drawn(glance.overview.usage, visit.formats),
            now_ms=now_ms,
            shown=shown,
            offered_days=offered_days(today, visit.formats),
            range_query=days_query(visit),
            range_refusal=refusal,
        )
