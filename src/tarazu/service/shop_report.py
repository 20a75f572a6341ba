"""What operators see of the whole shop at a glance."""

from datetime import tzinfo

from msgspec import Struct
from sqlalchemy import Connection

from tarazu.domain.accounts import AccountStatus
from tarazu.domain.calendar import MILLISECONDS_PER_HOUR, day_of, day_start_ms, minute_of, period_of, periods_until
from tarazu.service.identifiers import first_completion_id
from tarazu.store.shop import (
    DayFigures,
    ModelFigures,
    WithoutReply,
    accounts_by_status,
    accounts_without_reply,
    day_figures,
    figures_by_model,
)

NEWEST_MAX = 20_000
"""Of the newest requests so many are looked at, however many there are."""
GLANCE_HOURS = 1
DAY_HOURS = 24
TOP_ACCOUNTS = 10


class Lately(Struct, frozen=True, kw_only=True):
    """The requests of the last `hours`, by model and in all.

    Where there were as many as NEWEST_MAX it `is_cut`: the figures are those of the newest, from `since_ms` on.
    """

    hours: int
    since_ms: int
    is_cut: bool
    requests: int
    charged: int
    failed: int
    running: int
    credits: int
    models: tuple[ModelFigures, ...]
    without_reply: tuple[WithoutReply, ...]


class ShopReport(Struct, frozen=True, kw_only=True):
    """The shop as it stands: lately, today (`day`, in the catalogue's time zone), and its accounts by status."""

    last_hour: Lately
    last_day: Lately
    day: str
    today: DayFigures
    accounts: dict[AccountStatus, int]


def shop_report(connection: Connection, zone: tzinfo, now_ms: int) -> ShopReport:
    """Look at the shop."""
    day = day_of(now_ms, zone)
    return ShopReport(
        last_hour=lately(connection, GLANCE_HOURS, zone, now_ms),
        last_day=lately(connection, DAY_HOURS, zone, now_ms),
        day=day,
        today=day_figures(connection, day, since_minute=minute_of(day_start_ms(day, zone)), top=TOP_ACCOUNTS),
        accounts=accounts_by_status(connection),
    )


def lately(connection: Connection, hours: int, zone: tzinfo, now_ms: int) -> Lately:
    """Add up the requests of the last hours, at most a month's."""
    since_ms = now_ms - hours * MILLISECONDS_PER_HOUR
    first_id, end_id = first_completion_id(since_ms), first_completion_id(now_ms + 1)
    periods = periods_until(period_of(now_ms, zone), 2)
    models = figures_by_model(connection, first_id=first_id, end_id=end_id, periods=periods, limit=NEWEST_MAX)
    found = sum(each.requests for each in models)
    charged, failed = sum(each.charged for each in models), sum(each.failed for each in models)
    is_cut = found >= NEWEST_MAX
    return Lately(
        hours=hours,
        since_ms=min(each.oldest_ms for each in models) if is_cut else since_ms,
        is_cut=is_cut,
        requests=found,
        charged=charged,
        failed=failed,
        running=found - charged - failed,
        credits=sum(each.credits for each in models),
        models=tuple(models),
        without_reply=tuple(
            accounts_without_reply(
                connection, first_id=first_id, end_id=end_id, periods=periods, limit=NEWEST_MAX, top=TOP_ACCOUNTS
            )
        ),
    )
