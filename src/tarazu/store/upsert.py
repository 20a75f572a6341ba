"""What an INSERT does with rows that are there already."""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, Table


def insert_into(connection: Connection, table: Table) -> Any:
    """Begin an INSERT in the store's own dialect, which can say what becomes of a row that is there already."""
    # The other one is not loaded: its dialect would be a tenth of a command's start.
    if connection.dialect.name == "postgresql":
        from sqlalchemy.dialects.postgresql import insert  # noqa: PLC0415 - as told

        return insert(table)
    from sqlalchemy.dialects.sqlite import insert as insert_sqlite  # noqa: PLC0415 - as told

    return insert_sqlite(table)


def resolving(insert: Any, table: Table, *, adding: Iterable[str] = (), replacing: Iterable[str] = ()) -> Any:
    """Let a row with the primary key of one that exists change that one, in an INSERT of either store's dialect.

    The new row's `adding` columns are added to the old row's, and its `replacing` columns take their place; with
    neither such a row is an error.
    """
    settings = {
        **{name: table.c[name] + insert.excluded[name] for name in adding},
        **{name: insert.excluded[name] for name in replacing},
    }
    key = list(table.primary_key.columns)
    return insert.on_conflict_do_update(index_elements=key, set_=settings) if settings else insert
