"""Insert rows, or add to or replace those that are there already, on either store."""

from collections.abc import Iterable

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.dml import Insert


def upsert(
    connection: Connection, table: Table, *, adding: Iterable[str] = (), replacing: Iterable[str] = ()
) -> Insert:
    """Make an INSERT for either store.

    Where the primary key exists, the new row's `adding` columns are added to the old row's, and its `replacing` columns
    take their place.
    """
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    statement = insert(table)
    return statement.on_conflict_do_update(
        index_elements=list(table.primary_key.columns),
        set_={
            **{name: table.c[name] + statement.excluded[name] for name in adding},
            **{name: statement.excluded[name] for name in replacing},
        },
    )
