"""What an account has used, by day, model or key: sums of its daily usage, whatever the number of its requests."""

from typing import Any

from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, Select, bindparam, func, select, tuple_

from tarazu.store.schema import daily_usage, keys

_FIGURES = (
    daily_usage.c.requests,
    daily_usage.c.credits,
    daily_usage.c.prompt_tokens,
    daily_usage.c.completion_tokens,
)


class Usage(Struct, frozen=True):
    """Charged requests, what they cost, and their tokens."""

    requests: int = 0
    credits: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.requests + other.requests,
            self.credits + other.credits,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
        )


class KeyUsage(Struct, frozen=True, kw_only=True):
    """What one key has used."""

    key_id: str
    key_name: str
    usage: Usage


class UsageOfDay(Struct, frozen=True, kw_only=True):
    """What one key has used of one model on one day."""

    day: str
    key_id: str
    key_name: str
    model_id: str
    usage: Usage


def usage_by_day(connection: Connection, account_id: str, *, first_day: str, last_day: str) -> dict[str, Usage]:
    """Add up the usage of each day from the first to the last; a day without any is left out."""
    return _added_up(connection, _BY_DAY, account_id, first_day, last_day)


def usage_by_model(connection: Connection, account_id: str, *, first_day: str, last_day: str) -> dict[str, Usage]:
    """Add up the usage of each model in those days, by its id; it need not be on sale any more."""
    return _added_up(connection, _BY_MODEL, account_id, first_day, last_day)


def usage_by_key(connection: Connection, account_id: str, *, first_day: str, last_day: str) -> list[KeyUsage]:
    """Add up the usage of each key in those days, also of those that have ended since."""
    return [
        KeyUsage(key_id=key_id, key_name=name, usage=_usage_of(figures))
        for name, key_id, *figures in connection.execute(_BY_KEY, _values(account_id, first_day, last_day))
    ]


def usage_of_days(
    connection: Connection,
    account_id: str,
    *,
    first_day: str | None,
    last_day: str | None,
    after: UsageOfDay | None,
    limit: int,
) -> list[UsageOfDay]:
    """Read the usage of each day, key and model, the earliest first: at most `limit`, those after `after` if given."""
    order = (daily_usage.c.day, daily_usage.c.key_id, daily_usage.c.model_id)
    query = select(*order, *_FIGURES).where(daily_usage.c.account_id == account_id)
    if first_day is not None:
        query = query.where(daily_usage.c.day >= first_day)
    if last_day is not None:
        query = query.where(daily_usage.c.day <= last_day)
    if after is not None:
        query = query.where(daily_usage.c.day >= after.day)  # by which the index is entered
        query = query.where(tuple_(*order) > (after.day, after.key_id, after.model_id))
    page = query.order_by(*order).limit(limit).subquery("page")
    named = (
        select(page.c.day, page.c.key_id, keys.c.name, page.c.model_id, *(page.c[figure.name] for figure in _FIGURES))
        .join(keys, keys.c.id == page.c.key_id)
        .order_by(page.c.day, page.c.key_id, page.c.model_id)
    )
    return [
        UsageOfDay(day=day, key_id=key_id, key_name=name, model_id=model_id, usage=_usage_of(figures))
        for day, key_id, name, model_id, *figures in connection.execute(named)
    ]


def _added_up(
    connection: Connection, query: Select[Any], account_id: str, first_day: str, last_day: str
) -> dict[str, Usage]:
    found = connection.execute(query, _values(account_id, first_day, last_day))
    return {name: _usage_of(figures) for name, *figures in found}


def _values(account_id: str, first_day: str, last_day: str) -> dict[str, str]:
    return {"account_id": account_id, "first_day": first_day, "last_day": last_day}


def _usage_of(figures: list[Any]) -> Usage:
    return Usage(*map(int, figures))  # PostgreSQL's sums are decimals


def _usage_by(column: ColumnElement[str]) -> Select[Any]:
    columns: list[ColumnElement[Any]] = [column, *(func.sum(figure).label(figure.name) for figure in _FIGURES)]
    return (
        select(*columns)
        .where(daily_usage.c.account_id == bindparam("account_id"))
        .where(daily_usage.c.day.between(bindparam("first_day"), bindparam("last_day")))
        .group_by(column)
    )


_BY_DAY = _usage_by(daily_usage.c.day)
_BY_MODEL = _usage_by(daily_usage.c.model_id)
_OF_KEYS = _usage_by(daily_usage.c.key_id).subquery("of_keys")
_BY_KEY = select(keys.c.name, _OF_KEYS).join(keys, keys.c.id == _OF_KEYS.c.key_id)
