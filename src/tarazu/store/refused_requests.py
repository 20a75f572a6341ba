"""Requests that were refused, summed up: written by each process, read an account's newest first, for 30 days."""

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

from msgspec import Struct
from sqlalchemy import Connection, Select, select

from tarazu.domain.refused import KEPT_MS, Refused
from tarazu.store.many_rows import insert_rows
from tarazu.store.newest import Newest, NewestPage, Place
from tarazu.store.request_history import Ending, RequestFilter, of_key_and_model
from tarazu.store.schema import keys, refused_requests

_row = refused_requests.c


class RefusedRow(Struct, frozen=True, kw_only=True):
    """So many requests that were refused alike within ten minutes, as the books have them.

    `code` is that of the error table; `model_id` the model as asked for, None where it is not known.
    """

    id: str
    key_id: str
    key_name: str
    code: str
    model_id: str | None
    requests: int
    first_at_ms: int
    last_at_ms: int
    ending: ClassVar = Ending.REFUSED

    @property
    def place(self) -> Place:
        """Tell where a list goes on after it."""
        return Place(self.first_at_ms, self.id)


def write_refused(connection: Connection, refused: Sequence[Refused]) -> None:
    """Add what was refused, one kind at least, to what the books have; the kinds come in the order of their ids.

    So two processes wait for each other in one order.
    """
    _WRITE.write(
        connection,
        [
            {
                "id": each.kind.id,
                "account_id": each.kind.account_id,
                "key_id": each.kind.key_id,
                "code": each.kind.error.value.code,
                "model_id": each.kind.model_id,
                "requests": each.requests,
                "first_at_ms": each.first_at_ms,
                "last_at_ms": each.last_at_ms,
                "expires_at_ms": each.kind.slot_ms + KEPT_MS,
            }
            for each in refused
        ],
    )


def newest_refused(
    connection: Connection, account_id: str, *, limit: int, before: Place | None, sought: RequestFilter
) -> NewestPage[RefusedRow]:
    """Read an account's newest of those that are sought, by the first of each, at most `limit`, older than `before`."""
    is_narrowed = not (sought.key_id is sought.model_id is None)
    return Newest(at=_row.first_at_ms, columns=_COLUMNS, read=_read).page(
        connection,
        account_id,
        limit=limit,
        before=before,
        since_ms=sought.since_ms,
        until_ms=sought.until_ms,
        narrowing=partial(of_key_and_model, sought=sought) if is_narrowed else None,
    )


def find_refused(connection: Connection, account_id: str, id_: str) -> RefusedRow | None:
    """Read one of an account's; None where it has none with this id."""
    found = _read(connection, select(*_COLUMNS).where(_row.id == id_, _row.account_id == account_id))
    return found[0] if found else None


def _read(connection: Connection, query: Select[Any]) -> list[RefusedRow]:
    """Read the few rows that a query selects; then the names of their keys."""
    page = query.subquery("page")
    named = (
        select(page, keys.c.name.label("key_name"))
        .join(keys, keys.c.id == page.c.key_id)
        .order_by(page.c.first_at_ms.desc(), page.c.id.desc())
    )
    return [RefusedRow(**row) for row in connection.execute(named).mappings()]


_OF_ROW = tuple(name for name in RefusedRow.__struct_fields__ if name != "key_name")
_COLUMNS = [_row[name] for name in _OF_ROW]
_WRITE = insert_rows(
    refused_requests, (*_OF_ROW, "account_id", "expires_at_ms"), adding=["requests"], replacing=["last_at_ms"]
)
