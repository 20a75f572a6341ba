"""Statements that write many rows, made once: row after row, or in PostgreSQL all rows from one JSON parameter.

Row after row (executemany) is cheapest in SQLite, which runs in the process, and for a row or two. For more, PostgreSQL
spends less on taking JSON apart than on a message for each row, and so does the ledger's thread.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
from sqlalchemy import (
    JSON,
    ColumnElement,
    Connection,
    LargeBinary,
    Subquery,
    Table,
    bindparam,
    cast,
    column,
    func,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from tarazu.store.prepared import Prepared, Values, write_together
from tarazu.store.upsert import resolving

FEW = 3
"""Up to so many rows PostgreSQL takes them row after row."""

_encode = msgspec.json.Encoder().encode


class RowsStatement:
    """A statement that is run for many rows at a time."""

    def __init__(self, row_by_row: Mapping[str, Prepared], at_once: Prepared | None) -> None:
        """Take the statement for one row, by the store's name, and PostgreSQL's for many, where it can have one."""
        self._row_by_row = row_by_row
        self._at_once = at_once

    def write(self, connection: Connection, rows: Sequence[Values]) -> int:
        """Write the rows, one at least, which all have the same names; answer with how many were written."""
        return write_all(connection, [(self, rows)])[0]

    def given(self, store: str, rows: Sequence[Values]) -> tuple[Prepared, Sequence[Values]]:
        """Choose how this store is given the rows, and arrange them so."""
        if store == "postgresql" and self._at_once is not None and len(rows) > FEW:
            return self._at_once, [{"many_rows": _encode(rows).decode(), "many": len(rows)}]
        return self._row_by_row[store], rows


def write_all(connection: Connection, writes: Sequence[tuple[RowsStatement, Sequence[Values]]]) -> list[int]:
    """Write the rows of each statement, in their order; answer with how many each has written."""
    store = connection.dialect.name
    return write_together(connection, [statement.given(store, rows) for statement, rows in writes])


def insert_rows(
    table: Table, columns: Sequence[str], *, adding: Iterable[str] = (), replacing: Iterable[str] = ()
) -> RowsStatement:
    """Make an INSERT of rows with these columns.

    Where the primary key exists, the new row's `adding` columns are added to the old row's, and its `replacing` columns
    take their place; with neither it is an error.
    """
    resolved = partial(resolving, table=table, adding=tuple(adding), replacing=tuple(replacing))
    row_by_row = {
        "postgresql": Prepared(resolved(postgresql.insert(table)), columns),
        "sqlite": Prepared(resolved(sqlite.insert(table)), columns),
    }
    # JSON has no bytes.
    if any(isinstance(table.c[name].type, LargeBinary) for name in columns):
        return RowsStatement(row_by_row, None)
    rows = _rows_of_json({name: table.c[name] for name in columns})
    at_once = postgresql.insert(table).from_select(list(columns), select(rows))
    return RowsStatement(row_by_row, Prepared(resolved(at_once)))


def update_rows(
    table: Table, *, by: Sequence[str], setting: Sequence[str], where: ColumnElement[bool] | None = None
) -> RowsStatement:
    """Make an UPDATE of the columns `setting` in the rows that the columns `by` tell, where `where` is true of them.

    In what it is given to write, the names of the `by` columns begin with `of_`.
    """
    names = {f"of_{name}": table.c[name] for name in by}
    rows = _rows_of_json(names | {name: table.c[name] for name in setting})
    conditions = () if where is None else (where,)
    of_row = (names[name] == bindparam(name) for name in names)
    row_by_row = Prepared(update(table).where(*of_row, *conditions), (*names, *setting))
    at_once = (
        update(table)
        .where(*(names[name] == rows.c[name] for name in names), *conditions)
        .values({table.c[name]: rows.c[name] for name in setting})
    )
    return RowsStatement(dict.fromkeys(("postgresql", "sqlite"), row_by_row), Prepared(at_once))


def _rows_of_json(columns: Mapping[str, ColumnElement[Any]]) -> Subquery:
    """Select the rows out of the JSON parameter.

    The limit says how many rows there are, so that PostgreSQL finds the few rows to update by the index; it would take
    them to be a hundred, and read a table of some thousands from end to end.
    """
    rows = (
        func.json_to_recordset(cast(bindparam("many_rows"), JSON))
        .table_valued(*(column(name, like.type) for name, like in columns.items()), name="rows")
        .render_derived(with_types=True)
    )
    return select(rows).limit(bindparam("many")).subquery("given")
