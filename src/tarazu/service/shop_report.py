"""What operators see of the whole shop at a glance."""

from collections import defaultdict
from collections.abc import Mapping
from datetime import tzinfo

from msgspec import Struct
from sqlalchemy import Connection

from tarazu.domain.accounts import AccountStatus
from tarazu.domain.calendar import (
    MILLISECONDS_PER_HOUR,
    DayRange,
    day_of,
    day_start_ms,
    minute_of,
    period_of,
    periods_until,
)
from tarazu.domain.catalogue import Catalogue
from tarazu.service.identifiers import first_completion_id
from tarazu.service.reports import model_name
from tarazu.store.shop import (
    DayFigures,
    ModelFigures,
    Sold,
    WithoutReply,
    accounts_by_status,
    accounts_without_reply,
    by_hour,
    count_low,
    day_figures,
    figures_by_model,
    sold_by_day,
)
from tarazu.store.usage import Usage

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


class Hour(Struct, frozen=True, kw_only=True):
    """The requests of an hour that begins at `since_ms`, and how many of them failed."""

    since_ms: int
    requests: int
    failed: int


class Care(Struct, frozen=True, kw_only=True):
    """Which accounts may need an operator: active ones with nothing or little left, and unverified ones."""

    exhausted: int
    low: int
    unverified: int


class SoldLine(Struct, frozen=True, kw_only=True):
    """What was used on a day, or of a model. `money` is what accounts without a plan have used, at today's prices."""

    id: str
    name: str
    usage: Usage
    money: int


class Sales(Struct, frozen=True, kw_only=True):
    """What all accounts have used in some days: day by day, by model, and those that spent most."""

    days: tuple[SoldLine, ...]
    models: tuple[SoldLine, ...]
    total: SoldLine
    of_plans: Usage
    accounts: DayFigures


class ShopReport(Struct, frozen=True, kw_only=True):
    """The shop as it stands: lately, today (`day`, in the catalogue's time zone), and its accounts by status."""

    last_hour: Lately
    last_day: Lately
    day: str
    today: DayFigures
    accounts: dict[AccountStatus, int]
    hours: tuple[Hour, ...]


def sales(connection: Connection, catalogue: Catalogue, days: DayRange) -> Sales:
    """Add up what was sold in some days."""
    since_minute = minute_of(day_start_ms(days.first, catalogue.zone))
    sold = sold_by_day(connection, days, since_minute=since_minute)
    of_day, of_model = defaultdict[str, list[Sold]](list), defaultdict[str, list[Sold]](list)
    for each in sold:
        of_day[each.day].append(each)
        of_model[each.model_id].append(each)
    by_model = [_line(id_, model_name(catalogue, id_), lines, catalogue) for id_, lines in of_model.items()]
    return Sales(
        days=tuple(_line(day, day, of_day.get(day, []), catalogue) for day in days.days),
        models=tuple(sorted(by_model, key=lambda line: (-line.usage.credits, -line.usage.requests, line.id))),
        total=_line("", "", sold, catalogue),
        of_plans=sum((each.usage for each in sold if each.has_plan), start=Usage()),
        accounts=day_figures(connection, days, since_minute=since_minute, top=TOP_ACCOUNTS),
    )


def care(connection: Connection, catalogue: Catalogue, now_ms: int, accounts: Mapping[AccountStatus, int]) -> Care:
    """Count the accounts that may need an operator; `accounts` is how many there are of each status."""
    quotas = {name: plan.monthly_credits for name, plan in catalogue.plans.items()}
    exhausted, low = count_low(connection, quotas, period_of(now_ms, catalogue.zone))
    return Care(
        exhausted=exhausted,
        low=low,
        unverified=accounts[AccountStatus.UNVERIFIED],
    )


def shop_report(connection: Connection, zone: tzinfo, now_ms: int) -> ShopReport:
    """Look at the shop."""
    day = day_of(now_ms, zone)
    return ShopReport(
        last_hour=lately(connection, GLANCE_HOURS, zone, now_ms),
        last_day=lately(connection, DAY_HOURS, zone, now_ms),
        day=day,
        today=day_figures(
            connection, DayRange(day, day), since_minute=minute_of(day_start_ms(day, zone)), top=TOP_ACCOUNTS
        ),
        accounts=accounts_by_status(connection),
        hours=hours(connection, zone, now_ms),
    )


def hours(connection: Connection, zone: tzinfo, now_ms: int) -> tuple[Hour, ...]:
    """Count the requests of each of the last DAY_HOURS, of the newest NEWEST_MAX."""
    since_ms = now_ms + 1 - DAY_HOURS * MILLISECONDS_PER_HOUR
    counted = by_hour(
        connection,
        first_id=first_completion_id(since_ms),
        end_id=first_completion_id(now_ms + 1),
        since_ms=since_ms,
        periods=periods_until(period_of(now_ms, zone), 2),
        limit=NEWEST_MAX,
    )
    counts = [counted.get(hour, (0, 0)) for hour in range(DAY_HOURS)]
    return tuple(
        Hour(since_ms=since_ms + hour * MILLISECONDS_PER_HOUR, requests=requests, failed=failed)
        for hour, (requests, failed) in enumerate(counts)
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


def _line(id_: str, name: str, sold: list[Sold], catalogue: Catalogue) -> SoldLine:
    return SoldLine(
        id=id_,
        name=name,
        usage=sum((each.usage for each in sold), start=Usage()),
        money=sum(_amount(each, catalogue) for each in sold if not each.has_plan),
    )


def _amount(sold: Sold, catalogue: Catalogue) -> int:
    model = catalogue.models.get(sold.model_id)
    return 0 if model is None else sold.usage.requests * (model.payg_amount or 0)
