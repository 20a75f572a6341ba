"""Statements of the hot path: their text is made once for each store, and the driver runs them as they are.

SQLAlchemy looks a statement up, arranges its parameters and describes its result with much care, each time it is
executed. For the dozen small statements of a batch all that took twice as long as the database itself.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from msgspec import Struct
from sqlalchemy import ClauseElement, Connection, Dialect
from sqlalchemy.exc import DBAPIError

from tarazu.store.driver_errors import leave_values_out

Values = Mapping[str, Any]
"""The statement's parameters by their names."""


class _Text(Struct, frozen=True):
    sql: str
    names: Sequence[str] | None
    """The parameters in their order, where the driver counts them; None where it knows them by name."""
    fixed: Values
    """What the statement itself says."""
    processes: Mapping[str, Callable[[Any], Any]]
    """What makes the driver's values, where they are others than ours."""

    def arranged(self, values: Values) -> Any:
        whole = {**self.fixed, **values}
        for name, process in self.processes.items():
            whole[name] = process(whole[name])
        return whole if self.names is None else tuple(map(whole.__getitem__, self.names))


class Prepared:
    """A statement that is run often, inside a transaction, with values for its bound parameters."""

    def __init__(self, statement: ClauseElement, columns: Sequence[str] | None = None) -> None:
        """Take a statement without a parameter that expands, that returns no type which SQLAlchemy converts.

        `columns` are those that it writes, where it does not say so itself.
        """
        self._statement = statement
        self._columns = columns
        self._texts: dict[str, _Text] = {}

    def read(self, connection: Connection, values: Values) -> list[Sequence[Any]]:
        """Run it, and answer with all rows that it finds."""
        text = self._text(connection.dialect)
        with _cursor(connection) as cursor:
            connection.dialect.do_execute(cursor, text.sql, text.arranged(values))
            rows: list[Sequence[Any]] = cursor.fetchall()
            return rows

    def write(self, connection: Connection, rows: Sequence[Values]) -> int:
        """Run it for each row, one at least, and answer with the number of rows that it has written."""
        text = self._text(connection.dialect)
        arranged = [text.arranged(row) for row in rows]
        with _cursor(connection) as cursor:
            if len(arranged) == 1:
                connection.dialect.do_execute(cursor, text.sql, arranged[0])
            else:
                connection.dialect.do_executemany(cursor, text.sql, arranged)
            written: int = cursor.rowcount
            return written

    def _text(self, dialect: Dialect) -> _Text:
        text = self._texts.get(dialect.name)
        if text is None:
            text = self._texts[dialect.name] = _text_of(self._statement, self._columns, dialect)
        return text


def _text_of(statement: ClauseElement, columns: Sequence[str] | None, dialect: Dialect) -> _Text:
    compiled: Any = statement.compile(dialect=dialect, column_keys=None if columns is None else list(columns))
    binds = {name: compiled.binds[name] for name in compiled.params}
    expanding = [name for name, bind in binds.items() if bind.expanding]
    assert not expanding, f"the text would be another for each number of values: {expanding}"
    processes = {name: bind.type.dialect_impl(dialect).bind_processor(dialect) for name, bind in binds.items()}
    return _Text(
        sql=compiled.string,
        names=tuple(compiled.positiontup) if compiled.positional else None,
        fixed={name: bind.effective_value for name, bind in binds.items() if not bind.required},
        processes={name: process for name, process in processes.items() if process is not None},
    )


@contextmanager
def _cursor(connection: Connection) -> Iterator[Any]:
    """Lend a cursor of the driver; its errors become those that SQLAlchemy would have raised."""
    assert connection.in_transaction(), "the driver alone would begin none"
    cursor: Any = connection.connection.cursor()
    try:
        yield cursor
    except connection.dialect.loaded_dbapi.Error as error:
        raise _of_sqlalchemy(error, connection, cursor) from error
    finally:
        cursor.close()


def _of_sqlalchemy(error: Exception, connection: Connection, cursor: Any) -> BaseException:
    dialect = connection.dialect
    is_disconnect = dialect.is_disconnect(error, connection.connection.dbapi_connection, cursor)  # type: ignore[arg-type]
    if is_disconnect:
        connection.invalidate(error)
    leave_values_out(error)
    return DBAPIError.instance(
        None,
        None,
        error,
        dialect.loaded_dbapi.Error,
        hide_parameters=True,
        connection_invalidated=is_disconnect,
        dialect=dialect,
    )
