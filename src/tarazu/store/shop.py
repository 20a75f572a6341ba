"""The shop at a glance: what was asked for lately, by whom, and who the accounts are.

Nothing here reads all requests, or all daily usage: the newest requests are found by their ids, which sort by time, and
the usage of a day through the accounts.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct
from sqlalchemy import BigInteger, ColumnElement, Connection, RowMapping, and_, bindparam, case, cast, func, select

from tarazu.domain.accounts import AccountStatus
from tarazu.domain.calendar import MILLISECONDS_PER_HOUR, DayRange
from tarazu.domain.credits import LOW_PART, Reason, RequestState
from tarazu.store.schema import accounts, daily_usage, requests
from tarazu.store.usage import Usage

OF_ALL = "of_all_"
"""Begins the names of figures that are those of all accounts together."""


class ModelFigures(Struct, frozen=True, kw_only=True):
    """The newest requests for one model: `requests` in all, and what has become of them.

    `credits` are those of the charged ones, and so are the durations that 50 and 95 of a hundred of them did not pass;
    these are None where none was charged. `oldest_ms` is when the first of all came in.
    """

    model_id: str
    requests: int
    charged: int
    failed: int
    credits: int
    p50_ms: int | None
    p95_ms: int | None
    oldest_ms: int


class AccountUsage(Struct, frozen=True, kw_only=True):
    """What one account has used on a day."""

    account_id: str
    account_name: str
    usage: Usage


class WithoutReply(Struct, frozen=True, kw_only=True):
    """The newest requests of one account that have no reply by its own doing: why, and how many were charged."""

    account_id: str
    account_name: str
    abandoned: int
    timed_out: int
    charged: int


class Sold(Struct, frozen=True, kw_only=True):
    """What all accounts with a plan, or all without one, have used of a model on a day."""

    day: str
    model_id: str
    has_plan: bool
    usage: Usage


class DayFigures(Struct, frozen=True, kw_only=True):
    """What all accounts have used in some days: how many did, how much, and those that spent most."""

    accounts: int
    usage: Usage
    top: tuple[AccountUsage, ...]


def figures_by_model(
    connection: Connection, *, first_id: str, end_id: str, periods: Sequence[str], limit: int
) -> list[ModelFigures]:
    """Add up, by model, the newest requests of these periods with an id from `first_id` on and before `end_id`.

    At most `limit` of them are looked at: where that many are found, there may be more.
    """
    values = {"first_id": first_id, "end_id": end_id, "periods": list(periods), "limit": limit}
    return [ModelFigures(**row) for row in connection.execute(_BY_MODEL, values).mappings()]


def accounts_without_reply(
    connection: Connection, *, first_id: str, end_id: str, periods: Sequence[str], limit: int, top: int
) -> list[WithoutReply]:
    """Name the `top` accounts with most requests without a reply, of those that `figures_by_model` looks at."""
    values = {"first_id": first_id, "end_id": end_id, "periods": list(periods), "limit": limit, "top": top}
    return [WithoutReply(**row) for row in connection.execute(_WITHOUT_REPLY, values).mappings()]


def day_figures(connection: Connection, days: DayRange, *, since_minute: int, top: int) -> DayFigures:
    """Add up the usage of some days, and name the `top` accounts that spent most.

    `since_minute` is the one in which the first began: accounts that have sent nothing since then are not looked up.
    """
    values = {"first_day": days.first, "last_day": days.last, "since_minute": since_minute, "top": top}
    found = connection.execute(_TOP, values).mappings().all()
    if not found:
        return DayFigures(accounts=0, usage=Usage(), top=())
    return DayFigures(
        accounts=found[0]["accounts"],
        usage=_usage_of(found[0], of_all=True),
        top=tuple(
            AccountUsage(account_id=row["id"], account_name=row["name"], usage=_usage_of(row, of_all=False))
            for row in found
        ),
    )


def sold_by_day(connection: Connection, days: DayRange, *, since_minute: int) -> list[Sold]:
    """Add up the usage of all accounts in these days, by day and model, apart for those with a plan and those without.

    `since_minute` is the one in which the first day began, as in `day_figures`.
    """
    values = {"first_day": days.first, "last_day": days.last, "since_minute": since_minute}
    return [
        Sold(day=day, model_id=model_id, has_plan=bool(has_plan), usage=Usage(*map(int, figures)))
        for day, model_id, has_plan, *figures in connection.execute(_SOLD, values)
    ]


def by_hour(
    connection: Connection, *, first_id: str, end_id: str, since_ms: int, periods: Sequence[str], limit: int
) -> dict[int, tuple[int, int]]:
    """Count the requests that `figures_by_model` looks at, by hour since an instant, and those of them that failed."""
    values = {"first_id": first_id, "end_id": end_id, "since_ms": since_ms, "periods": list(periods), "limit": limit}
    return {int(hour): (requests_, int(failed)) for hour, requests_, failed in connection.execute(_BY_HOUR, values)}


def count_low(connection: Connection, quotas: Mapping[str, int], period: str) -> tuple[int, int]:
    """Count the active accounts with one of these plans that have nothing left of quota and balance, and little.

    Little is a fifth of the quota or less, both together, as `is_low` of the domain has it.
    """
    if not quotas:
        return 0, 0
    used = case((accounts.c.period == period, accounts.c.used), else_=0)
    quota = case(dict(quotas), value=accounts.c.plan, else_=0)
    left = case((used >= quota, 0), else_=quota - used) + accounts.c.balance
    query = select(
        func.count().filter(left == 0),
        func.count().filter(left > 0, left * LOW_PART <= quota),
    ).where(accounts.c.status == AccountStatus.ACTIVE.value, accounts.c.plan.in_(list(quotas)))
    exhausted, low = connection.execute(query).one()
    return int(exhausted), int(low)


def accounts_by_status(connection: Connection) -> dict[AccountStatus, int]:
    """Count the accounts of each status."""
    query = select(accounts.c.status, func.count()).group_by(accounts.c.status)
    counted = {AccountStatus(status): number for status, number in connection.execute(query)}
    return dict.fromkeys(AccountStatus, 0) | counted


def _usage_of(row: RowMapping, *, of_all: bool) -> Usage:
    """Read the usage of the row's account, or of all accounts, which each row has too."""
    names = Usage.__struct_fields__
    return Usage(*(int(row[OF_ALL + name if of_all else name]) for name in names))  # PostgreSQL's sums are decimals


_LATELY = (
    select(
        requests.c.account_id,
        requests.c.model_id,
        requests.c.state,
        requests.c.reason,
        requests.c.credits,
        requests.c.created_at_ms,
        (requests.c.ended_at_ms - requests.c.created_at_ms).label("duration_ms"),
    )
    .where(requests.c.id >= bindparam("first_id"), requests.c.id < bindparam("end_id"))
    .where(requests.c.period.in_(bindparam("periods", expanding=True)))
    .order_by(requests.c.id.desc())
    .limit(bindparam("limit"))
    .subquery("lately")
)
_ALIKE = (_LATELY.c.model_id, _LATELY.c.state)
_RANKED = select(
    _LATELY,
    func.row_number().over(partition_by=_ALIKE, order_by=_LATELY.c.duration_ms).label("place"),
    func.count().over(partition_by=_ALIKE).label("places"),
).subquery("ranked")
_IS_CHARGED = _RANKED.c.state == RequestState.CHARGED
_HAS_FAILED = _RANKED.c.state.in_([RequestState.RELEASED, RequestState.SWEPT])


def _number_where(condition: ColumnElement[bool]) -> ColumnElement[int]:
    return func.sum(case((condition, 1), else_=0))


def _duration_of(percent: int) -> ColumnElement[int]:
    """The least duration that `percent` of a hundred of the charged requests do not pass."""
    is_enough = _RANKED.c.place * 100 >= _RANKED.c.places * percent
    return func.min(case((and_(_IS_CHARGED, is_enough), _RANKED.c.duration_ms)))


_BY_MODEL = (
    select(
        _RANKED.c.model_id,
        func.count().label("requests"),
        _number_where(_IS_CHARGED).label("charged"),
        _number_where(_HAS_FAILED).label("failed"),
        cast(func.sum(case((_IS_CHARGED, _RANKED.c.credits), else_=0)), BigInteger).label("credits"),
        _duration_of(50).label("p50_ms"),
        _duration_of(95).label("p95_ms"),
        func.min(_RANKED.c.created_at_ms).label("oldest_ms"),
    )
    .group_by(_RANKED.c.model_id)
    .order_by(_RANKED.c.model_id)
)

_WITHOUT_REPLY = (
    select(
        accounts.c.id.label("account_id"),
        accounts.c.name.label("account_name"),
        _number_where(_LATELY.c.reason == Reason.ABANDONED).label("abandoned"),
        _number_where(_LATELY.c.reason == Reason.TIMED_OUT).label("timed_out"),
        _number_where(_LATELY.c.state == RequestState.CHARGED).label("charged"),
    )
    .join(_LATELY, _LATELY.c.account_id == accounts.c.id)
    .where(_LATELY.c.reason.is_not(None))
    .group_by(accounts.c.id, accounts.c.name)
    .order_by(func.count().desc(), accounts.c.id)
    .limit(bindparam("top"))
)

_OF_THE_DAYS = and_(
    daily_usage.c.account_id == accounts.c.id,
    daily_usage.c.day.between(bindparam("first_day"), bindparam("last_day")),
)
_USAGE = {name: func.sum(daily_usage.c[name]) for name in Usage.__struct_fields__}
_TOP = (
    select(
        accounts.c.id,
        accounts.c.name,
        func.count().over().label("accounts"),
        *(figure.label(name) for name, figure in _USAGE.items()),
        *(func.sum(figure).over().label(OF_ALL + name) for name, figure in _USAGE.items()),
    )
    # An outer join goes from the accounts to their usage; with an inner one SQLite would go through all usage there is.
    .outerjoin(daily_usage, _OF_THE_DAYS)
    .where(accounts.c.window_minute >= bindparam("since_minute"))
    .group_by(accounts.c.id, accounts.c.name)
    .having(func.count(daily_usage.c.day) > 0)
    .order_by(_USAGE["credits"].desc(), _USAGE["requests"].desc(), accounts.c.id)
    .limit(bindparam("top"))
)
_HAS_PLAN = case((accounts.c.plan.is_not(None), 1), else_=0)
_SOLD = (
    select(daily_usage.c.day, daily_usage.c.model_id, _HAS_PLAN.label("has_plan"), *_USAGE.values())
    .select_from(accounts)
    .outerjoin(daily_usage, _OF_THE_DAYS)
    .where(accounts.c.window_minute >= bindparam("since_minute"))
    .group_by(daily_usage.c.day, daily_usage.c.model_id, _HAS_PLAN)
    .having(func.count(daily_usage.c.day) > 0)
)
_HOUR = (_LATELY.c.created_at_ms - bindparam("since_ms", type_=BigInteger)) // MILLISECONDS_PER_HOUR
_FAILED_LATELY = _LATELY.c.state.in_([RequestState.RELEASED, RequestState.SWEPT])
_BY_HOUR = select(_HOUR.label("hour"), func.count(), _number_where(_FAILED_LATELY)).group_by(_HOUR)
