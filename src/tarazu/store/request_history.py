"""The requests of one account, the newest first: read by its index, a page at a time. And one of any, by its id."""

from enum import StrEnum
from typing import Any

from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, Select, select, true, tuple_
from sqlalchemy.sql.base import ReadOnlyColumnCollection

from tarazu.domain.credits import Reason, RequestState, Source
from tarazu.store.schema import keys, requests

LOOKED_AT_MAX = 10_000
"""Requests that are gone through for one page of those with some key, model or ending, which no index has."""


class Ending(StrEnum):
    """What has become of a request, as far as its caller is concerned."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    RUNNING = "running"


class RequestRow(Struct, frozen=True, kw_only=True):
    """One request as the books have it. What its end brings is None while it is held."""

    id: str
    account_id: str
    key_id: str
    key_name: str
    model_id: str
    credits: int
    source: Source
    state: RequestState
    created_at_ms: int
    ended_at_ms: int | None
    tries: int | None
    prompt_tokens: int | None
    completion_tokens: int | None
    reason: Reason | None

    @property
    def credits_charged(self) -> int:
        """Tell what it has cost: its price, or nothing while it runs and where that was given back."""
        return self.credits if self.state is RequestState.CHARGED else 0


class RequestFilter(Struct, frozen=True, kw_only=True):
    """Which requests are looked for: those that are all of what is given."""

    key_id: str | None = None
    model_id: str | None = None
    ending: Ending | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    """The first instant that is not looked at any more."""

    @property
    def has_no_index(self) -> bool:
        """Tell whether the index, which has account and time, leads to others too."""
        return not (self.key_id is self.model_id is self.ending is None)


class RequestPage(Struct, frozen=True, kw_only=True):
    """What was found; `before` is the request that the next page begins after, None when there is no next one.

    `looked_at` is how many requests were gone through where the page ends for their number, and not for its length:
    the next one may have more, or none.
    """

    rows: list[RequestRow]
    before: str | None
    looked_at: int | None


def newest_requests(
    connection: Connection,
    account_id: str,
    *,
    limit: int,
    before: str | None = None,
    sought: RequestFilter = RequestFilter(),  # noqa: B008 - it is frozen
) -> RequestPage:
    """Read an account's newest requests of those that are sought, at most `limit`, older than the request `before`.

    Where no index leads to them, at most LOOKED_AT_MAX are gone through for a page.

    Raises:
        LookupError: the account has no request `before`.
    """
    conditions = [requests.c.account_id == account_id]
    if sought.since_ms is not None:
        conditions.append(requests.c.created_at_ms >= sought.since_ms)
    if sought.until_ms is not None:
        conditions.append(requests.c.created_at_ms < sought.until_ms)
    if before is not None:
        last = find_request(connection, account_id, before)
        if last is None:
            raise LookupError(before)
        conditions.append(requests.c.created_at_ms <= last.created_at_ms)  # the index has the time, and not the id
        conditions.append(tuple_(requests.c.created_at_ms, requests.c.id) < (last.created_at_ms, last.id))
    newest = (requests.c.created_at_ms.desc(), requests.c.id.desc())
    of_account = select(*_COLUMNS).where(*conditions).order_by(*newest)
    if not sought.has_no_index:
        rows = _read(connection, account_id, of_account.limit(limit + 1))
        return RequestPage(rows=rows[:limit], before=rows[limit - 1].id if len(rows) > limit else None, looked_at=None)
    looked_at = of_account.limit(LOOKED_AT_MAX).subquery("looked_at")
    found = (
        select(looked_at)
        .where(*_conditions(looked_at.c, sought))
        .order_by(looked_at.c.created_at_ms.desc(), looked_at.c.id.desc())
        .limit(limit + 1)
    )
    rows = _read(connection, account_id, found)
    if len(rows) > limit:
        return RequestPage(rows=rows[:limit], before=rows[limit - 1].id, looked_at=None)
    end = connection.execute(of_account.with_only_columns(requests.c.id).offset(LOOKED_AT_MAX - 1).limit(1)).scalar()
    return RequestPage(rows=rows, before=end, looked_at=None if end is None else LOOKED_AT_MAX)


def find_request(connection: Connection, account_id: str, request_id: str) -> RequestRow | None:
    """Read one request of an account; None where it has none with this id."""
    # Only by its id, and one: with the account beside it SQLite would go through all of the account's requests.
    found = _read(connection, account_id, select(*_COLUMNS).where(requests.c.id == request_id).limit(1))
    return found[0] if found else None


def find_any_request(connection: Connection, request_id: str) -> RequestRow | None:
    """Read one request, whichever account's it is; None where there is none with this id."""
    found = _read(connection, None, select(*_COLUMNS).where(requests.c.id == request_id).limit(1))
    return found[0] if found else None


def _conditions(row: ReadOnlyColumnCollection[str, Any], sought: RequestFilter) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if sought.key_id is not None:
        conditions.append(row.key_id == sought.key_id)
    if sought.model_id is not None:
        conditions.append(row.model_id == sought.model_id)
    if sought.ending is not None:
        has_reply = (row.state == RequestState.CHARGED) & row.reason.is_(None)
        is_held = row.state == RequestState.HELD
        conditions.append(
            {Ending.SUCCEEDED: has_reply, Ending.RUNNING: is_held, Ending.FAILED: ~has_reply & ~is_held}[sought.ending]
        )
    return conditions


def _read(connection: Connection, account_id: str | None, query: Select[Any]) -> list[RequestRow]:
    """Read the few requests that a query with a limit selects, those of the account; then the names of their keys."""
    page = query.subquery("page")
    named = (
        select(page, keys.c.name.label("key_name"))
        .join(keys, keys.c.id == page.c.key_id)
        .where(true() if account_id is None else page.c.account_id == account_id)
        .order_by(page.c.created_at_ms.desc(), page.c.id.desc())
    )
    return [
        RequestRow(
            **{
                **row,
                "source": Source(row["source"]),
                "state": RequestState(row["state"]),
                "reason": None if row["reason"] is None else Reason(row["reason"]),
            }
        )
        for row in connection.execute(named).mappings()
    ]


_COLUMNS = [requests.c[name] for name in RequestRow.__struct_fields__ if name != "key_name"]
