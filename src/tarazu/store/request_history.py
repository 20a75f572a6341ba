"""The requests of one account, the newest first: read by its index, a page at a time. And one of any, by its id."""

from typing import Any

from msgspec import Struct
from sqlalchemy import Connection, Select, select, true, tuple_

from tarazu.domain.credits import Reason, RequestState, Source
from tarazu.store.schema import keys, requests


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


def newest_requests(
    connection: Connection,
    account_id: str,
    *,
    limit: int,
    before: str | None = None,
    since_ms: int | None = None,
    until_ms: int | None = None,
) -> list[RequestRow]:
    """Read an account's newest requests, at most `limit`.

    Where they are given: older than the request `before`, not older than `since_ms`, older than `until_ms`.

    Raises:
        LookupError: the account has no request `before`.
    """
    conditions = [requests.c.account_id == account_id]
    if since_ms is not None:
        conditions.append(requests.c.created_at_ms >= since_ms)
    if until_ms is not None:
        conditions.append(requests.c.created_at_ms < until_ms)
    if before is not None:
        last = find_request(connection, account_id, before)
        if last is None:
            raise LookupError(before)
        conditions.append(requests.c.created_at_ms <= last.created_at_ms)  # the index has the time, and not the id
        conditions.append(tuple_(requests.c.created_at_ms, requests.c.id) < (last.created_at_ms, last.id))
    query = (
        select(*_COLUMNS)
        .where(*conditions)
        .order_by(requests.c.created_at_ms.desc(), requests.c.id.desc())
        .limit(limit)
    )
    return _read(connection, account_id, query)


def find_request(connection: Connection, account_id: str, request_id: str) -> RequestRow | None:
    """Read one request of an account; None where it has none with this id."""
    # Only by its id, and one: with the account beside it SQLite would go through all of the account's requests.
    found = _read(connection, account_id, select(*_COLUMNS).where(requests.c.id == request_id).limit(1))
    return found[0] if found else None


def find_any_request(connection: Connection, request_id: str) -> RequestRow | None:
    """Read one request, whichever account's it is; None where there is none with this id."""
    found = _read(connection, None, select(*_COLUMNS).where(requests.c.id == request_id).limit(1))
    return found[0] if found else None


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
