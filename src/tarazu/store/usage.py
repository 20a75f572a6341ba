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


class Part(Struct, frozen=True, kw_only=True):
    """Which part of an account's usage is added up: that of one key, of one model, or all."""

    key_id: str | None = None
    model_id: str | None = None


WHOLE = Part()


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


def usage_by_day_and_model(
    connection: Connection, account_id: str, *, first_day: str, last_day: str, part: Part = WHOLE
) -> dict[tuple[str, str], Usage]:
    """Add up the usage of each model, by its id, on each day from the first to the last; what has none is left out."""
    query = _usage_by(daily_usage.c.day, daily_usage.c.model_id, part=part)
    found = connection.execute(query, _values(account_id, first_day, last_day))
    return {(day, model_id): _usage_of(figures) for day, model_id, *figures in found}


def usage_by_key(
    connection: Connection, account_id: str, *, first_day: str, last_day: str, part: Part = WHOLE
) -> list[KeyUsage]:
    """Add up the usage of each key in those days, also of those that have ended since."""
    of_keys = _usage_by(daily_usage.c.key_id, part=part).subquery("of_keys")
    query = select(keys.c.name, of_keys).join(keys, keys.c.id == of_keys.c.key_id)
    return [
        KeyUsage(key_id=key_id, key_name=name, usage=_usage_of(figures))
        for name, key_id, *figures in connection.execute(query, _values(account_id, first_day, last_day))
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


def _values(account_id: str, first_day: str, last_day: str) -> dict[str, str]:
    return {"account_id": account_id, "first_day": first_day, "last_day": last_day}


def _usage_of(figures: list[Any]) -> Usage:
    return Usage(*map(int, figures))  # PostgreSQL's sums are decimals


def _usage_by(*groups: ColumnElement[str], part: Part) -> Select[Any]:
    columns: list[ColumnElement[Any]] = [*groups, *(func.sum(figure).label(figure.name) for figure in _FIGURES)]
    query = (
        select(*columns)
        .where(daily_usage.c.account_id == bindparam("account_id"))
        .where(daily_usage.c.day.between(bindparam("first_day"), bindparam("last_day")))
        .group_by(*groups)
    )
    if part.key_id is not None:
        query = query.where(daily_usage.c.key_id == part.key_id)
    if part.model_id is not None:
        query = query.where(daily_usage.c.model_id == part.model_id)
    return query
