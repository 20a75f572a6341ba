"""The backends that rest, a row for each process that leaves one alone. They decide nothing: operators look at them."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from sqlalchemy import Connection, delete, insert, select, tuple_

from tarazu.store.schema import backend_rests

RESTS_MAX = 1_000
"""Rows of one process."""
FORGOTTEN_AFTER_MS = 3_600_000
"""A row that has meant nothing for so long is of a process that has died: each process takes its own away."""
FORGOTTEN_MAX = 1_000

_KEY = (backend_rests.c.process_id, backend_rests.c.backend)


class BackendRest(Struct, frozen=True, kw_only=True):
    """One process leaves a backend alone, from `since_ms` until `until_ms`, because of `fault`.

    `backend` is its name, `state` "busy" or "tripped".
    """

    process_id: str
    backend: str
    model_id: str
    state: str
    fault: str
    since_ms: int
    until_ms: int


def write_rests(connection: Connection, process_id: str, rests: Sequence[BackendRest], now_ms: int) -> None:
    """Let these be all rests of a process, the first RESTS_MAX of them; take away what dead ones have left."""
    connection.execute(delete(backend_rests).where(backend_rests.c.process_id == process_id))
    rows = [_row(rest) for rest in rests[:RESTS_MAX]]
    if rows:
        connection.execute(insert(backend_rests), rows)
    # Rows that another process is taking away in this moment are left to it, so that nobody waits.
    old = (
        select(*_KEY)
        .where(backend_rests.c.until_ms < now_ms - FORGOTTEN_AFTER_MS)
        .limit(FORGOTTEN_MAX)
        .with_for_update(skip_locked=True)
    )
    connection.execute(delete(backend_rests).where(tuple_(*_KEY).in_(old)))


def try_write(connection: Connection, process_id: str) -> None:
    """Write something that leaves nothing, and that no other process waits for, to see that the books take a write.

    To set a row to what it is would not do: SQLite writes no page that stays the same.
    """
    over = BackendRest(process_id=process_id, backend="", model_id="", state="busy", fault="", since_ms=0, until_ms=0)
    connection.execute(insert(backend_rests), _row(over))
    connection.execute(delete(backend_rests).where(backend_rests.c.process_id == process_id))


def read_rests(connection: Connection, now_ms: int) -> list[BackendRest]:
    """Read the rests that are not over, by process and backend."""
    found = connection.execute(
        select(*(backend_rests.c[name] for name in BackendRest.__struct_fields__))
        .where(backend_rests.c.until_ms > now_ms)
        .order_by(*_KEY)
    )
    return [BackendRest(**row) for row in found.mappings()]


def _row(rest: BackendRest) -> dict[str, Any]:
    return {name: getattr(rest, name) for name in BackendRest.__struct_fields__}
