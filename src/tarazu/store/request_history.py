"""The requests of one account, the newest first: read by its index, a page at a time."""

from typing import Any

from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, Select, select, tuple_

from tarazu.domain.credits import RequestState, Source
from tarazu.store.schema import keys, requests


class RequestRow(Struct, frozen=True, kw_only=True):
    """One request as the books have it. What its end brings is None while it is held."""

    id: str
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
        then = _created_at_ms(connection, account_id, before)
        conditions.append(requests.c.created_at_ms <= then)  # the index has the time, and not the id
        conditions.append(tuple_(requests.c.created_at_ms, requests.c.id) < (then, before))
    query = (
        select(*_COLUMNS)
        .where(*conditions)
        .order_by(requests.c.created_at_ms.desc(), requests.c.id.desc())
        .limit(limit)
    )
    return _read(connection, query)


def find_request(connection: Connection, account_id: str, request_id: str) -> RequestRow | None:
    """Read one request of an account; None where it has none with this id."""
    found = _read(connection, select(*_COLUMNS).where(*_is(account_id, request_id)))
    return found[0] if found else None


def _read(connection: Connection, query: Select[Any]) -> list[RequestRow]:
    """Read the few requests that a query selects, and only then the names of their keys."""
    page = query.subquery("page")
    named = select(page, keys.c.name.label("key_name")).join(keys, keys.c.id == page.c.key_id)
    found = connection.execute(named.order_by(page.c.created_at_ms.desc(), page.c.id.desc())).mappings()
    return [
        RequestRow(**{**row, "source": Source(row["source"]), "state": RequestState(row["state"])}) for row in found
    ]


def _created_at_ms(connection: Connection, account_id: str, request_id: str) -> int:
    query = select(requests.c.created_at_ms).where(*_is(account_id, request_id))
    then: int | None = connection.execute(query).scalar_one_or_none()
    if then is None:
        raise LookupError(request_id)
    return then


def _is(account_id: str, request_id: str) -> tuple[ColumnElement[bool], ...]:
    return requests.c.id == request_id, requests.c.account_id == account_id


_COLUMNS = [requests.c[name] for name in RequestRow.__struct_fields__ if name != "key_name"]
