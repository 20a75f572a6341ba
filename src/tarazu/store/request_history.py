"""The requests of one account, the newest first: read by its index, a page at a time. And one of any, by its id."""

from enum import StrEnum
from functools import partial
from typing import Any

from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, Select, select, true
from sqlalchemy.sql.base import ReadOnlyColumnCollection

from tarazu.domain.credits import Reason, RequestState, Source
from tarazu.store.newest import Newest, NewestPage, Place
from tarazu.store.schema import keys, requests


class Ending(StrEnum):
    """What has become of a request, as far as its caller is concerned."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    RUNNING = "running"
    REFUSED = "refused"
    """It was never admitted; such requests are summed up (`refused_requests`)."""


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
    def place(self) -> Place:
        """Tell where a list goes on after it."""
        return Place(self.created_at_ms, self.id)

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


def newest_requests(
    connection: Connection,
    account_id: str,
    *,
    limit: int,
    before: Place | None = None,
    sought: RequestFilter = RequestFilter(),  # noqa: B008 - it is frozen
) -> NewestPage[RequestRow]:
    """Read an account's newest requests of those that are sought, at most `limit`, older than the place `before`."""
    newest = Newest(at=requests.c.created_at_ms, columns=_COLUMNS, read=partial(_read, account_id=account_id))
    return newest.page(
        connection,
        account_id,
        limit=limit,
        before=before,
        since_ms=sought.since_ms,
        until_ms=sought.until_ms,
        narrowing=partial(_narrowing, sought=sought) if sought.has_no_index else None,
    )


def find_request(connection: Connection, account_id: str, request_id: str) -> RequestRow | None:
    """Read one request of an account; None where it has none with this id."""
    # Only by its id, and one: with the account beside it SQLite would go through all of the account's requests.
    found = _read(connection, select(*_COLUMNS).where(requests.c.id == request_id).limit(1), account_id)
    return found[0] if found else None


def find_any_request(connection: Connection, request_id: str) -> RequestRow | None:
    """Read one request, whichever account's it is; None where there is none with this id."""
    found = _read(connection, select(*_COLUMNS).where(requests.c.id == request_id).limit(1), None)
    return found[0] if found else None


def of_key_and_model(row: ReadOnlyColumnCollection[str, Any], sought: RequestFilter) -> list[ColumnElement[bool]]:
    """Tell what is true of the rows with the key and the model that are sought."""
    conditions: list[ColumnElement[bool]] = []
    if sought.key_id is not None:
        conditions.append(row.key_id == sought.key_id)
    if sought.model_id is not None:
        conditions.append(row.model_id == sought.model_id)
    return conditions


def _narrowing(row: ReadOnlyColumnCollection[str, Any], sought: RequestFilter) -> list[ColumnElement[bool]]:
    conditions = of_key_and_model(row, sought)
    if sought.ending is not None:
        has_reply = (row.state == RequestState.CHARGED) & row.reason.is_(None)
        is_held = row.state == RequestState.HELD
        conditions.append(
            {Ending.SUCCEEDED: has_reply, Ending.RUNNING: is_held, Ending.FAILED: ~has_reply & ~is_held}[sought.ending]
        )
    return conditions


def _read(connection: Connection, query: Select[Any], account_id: str | None) -> list[RequestRow]:
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
