"""The shop at a glance: the first page."""

from msgspec import Struct
from sqlalchemy import Connection
from starlette.responses import Response

from tarazu.domain.accounts import Intake
from tarazu.domain.calendar import day_of
from tarazu.panel.asked_days import days_of, days_query
from tarazu.panel.ranges import offered_days
from tarazu.panel.usage_bars import failed_bars, hour_bars, money_bars, request_bars, usage_bars
from tarazu.panel.visits import Visit
from tarazu.service.back_office import BackOffice
from tarazu.service.backend_reports import BackendReport, backend_reports
from tarazu.service.provisioning import AUDITED
from tarazu.service.shop_report import Care, Sales, ShopReport, care, sales, shop_report
from tarazu.store.intake import read_intake
from tarazu.store.trail import Act, newest_of_kind

LAST_DAY = "day"
"""The value of `span` with which the figures by model are those of the last day, and not of the last hour."""

ACTS_LOOKED_AT = 2_000
"""Among so many of the newest acts the last audit is looked for."""


class Glance(Struct, frozen=True, kw_only=True):
    """All that the page shows, of one moment."""

    shop: ShopReport
    care: Care
    sales: Sales
    intake: Intake
    backends: tuple[BackendReport, ...]
    audit: Act | None
    """The last audit that was made from these pages, if it is among the newest acts."""


class ShopPages:
    """The page of the whole shop."""

    def __init__(self, office: BackOffice) -> None:
        self._office = office

    async def show(self, visit: Visit) -> Response:
        """Show the shop as it stands now, and what was sold in the days that are asked for."""
        catalogue, now_ms = self._office.catalogue, self._office.clock()
        today = day_of(now_ms, catalogue.zone)
        shown, refusal = days_of(visit, today)

        def look(connection: Connection) -> Glance:
            shop = shop_report(connection, catalogue.zone, now_ms)
            return Glance(
                shop=shop,
                care=care(connection, catalogue, now_ms, shop.accounts),
                sales=sales(connection, catalogue, shown.days),
                intake=read_intake(connection),
                backends=tuple(backend_reports(connection, catalogue.models.values(), now_ms)),
                audit=newest_of_kind(connection, AUDITED, among=ACTS_LOOKED_AT),
            )

        glance = await self._office.look(look)
        is_day = visit.query("span") == LAST_DAY
        return visit.page(
            "operators/shop.html",
            glance=glance,
            is_day=is_day,
            lately=glance.shop.last_day if is_day else glance.shop.last_hour,
            now_ms=now_ms,
            currency=catalogue.currency,
            shown=shown,
            offered_days=offered_days(today, visit.formats),
            range_query=days_query(visit),
            range_refusal=refusal,
            credit_bars=usage_bars(glance.sales.days, visit.formats),
            request_bars=request_bars(glance.sales.days, visit.formats),
            money_bars=money_bars(glance.sales.days, visit.formats, catalogue.currency),
            hour_bars=hour_bars(glance.shop.hours, visit.formats),
            failed_bars=failed_bars(glance.shop.hours, visit.formats),
        )
