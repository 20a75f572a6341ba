"""Statements of the hot path: their text is made once for each store, and the driver runs them as they are.

SQLAlchemy looks a statement up, arranges its parameters and describes its result with much care, each time it is
executed. For the dozen small statements of a batch all that took twice as long as the database itself.

Statements of which none needs another's answer go to PostgreSQL in one message: while rows are locked, whoever wants
them next waits for every journey to the server and back.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from types import TracebackType
from typing import Any, TypeVar

from msgspec import Struct
from sqlalchemy import ClauseElement, Connection, Dialect
from sqlalchemy.exc import DBAPIError

from tarazu.store.driver_errors import leave_values_out

Values = Mapping[str, Any]
"""The statement's parameters by their names."""
Row = Sequence[Any]

WITH_FIRST_STATEMENTS = "tarazu_with_first_statements"
"""By this name a connection's info keeps what its transaction sends to PostgreSQL with the first statements that go
together: something that is not worth a message of its own, and does no harm where there are none."""

T = TypeVar("T")


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

    def read(self, connection: Connection, values: Values) -> list[Row]:
        """Run it, and answer with all rows that it finds."""
        return read_together(connection, [(self, values)])[0]

    def run(self, dialect: Dialect, cursor: Any, rows: Sequence[Values]) -> None:
        """Give it to the driver, whose errors are not translated."""
        text = self._text(dialect)
        if len(rows) == 1:
            dialect.do_execute(cursor, text.sql, text.arranged(rows[0]))
        else:
            dialect.do_executemany(cursor, text.sql, [text.arranged(row) for row in rows])

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


def read_together(connection: Connection, asked: Sequence[tuple[Prepared, Values]]) -> list[list[Row]]:
    """Run statements of which none needs another's answer, in their order; answer with the rows that each finds."""
    return _run_together(connection, [(prepared, [values]) for prepared, values in asked], _all_rows)


def write_together(connection: Connection, given: Sequence[tuple[Prepared, Sequence[Values]]]) -> list[int]:
    """Run each statement for its rows, one at least, in their order; answer with how many rows each has written."""
    return _run_together(connection, given, _rows_written)


def _run_together(
    connection: Connection, runs: Sequence[tuple[Prepared, Sequence[Values]]], answer: Callable[[Any], T]
) -> list[T]:
    assert connection.in_transaction(), "the driver alone would begin none"
    driver: Any = connection.connection.dbapi_connection
    dialect = connection.dialect
    with driver_errors(connection):
        if dialect.name == "postgresql" and len(runs) > 1:
            cursors = [driver.cursor() for _ in runs]
            with driver.pipeline():
                if (also := connection.info.pop(WITH_FIRST_STATEMENTS, None)) is not None:
                    driver.execute(also)
                for cursor, (prepared, rows) in zip(cursors, runs, strict=True):
                    prepared.run(dialect, cursor, rows)
            return list(map(answer, cursors))
        answers = []
        with closing(driver.cursor()) as cursor:
            for prepared, rows in runs:
                prepared.run(dialect, cursor, rows)
                answers.append(answer(cursor))
        return answers


def _all_rows(cursor: Any) -> list[Row]:
    rows: list[Row] = cursor.fetchall()
    return rows


def _rows_written(cursor: Any) -> int:
    written: int = cursor.rowcount
    return written


class driver_errors:  # noqa: N801 - reads as a function, and is cheaper than a generator in every batch
    """Turn the driver's errors in the block into those that SQLAlchemy would have raised."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        """Begin the block."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Translate what the block has raised."""
        if isinstance(error, self._connection.dialect.loaded_dbapi.Error):
            raise _of_sqlalchemy(error, self._connection) from error


def _of_sqlalchemy(error: Exception, connection: Connection) -> BaseException:
    dialect = connection.dialect
    is_disconnect = dialect.is_disconnect(error, connection.connection.dbapi_connection, None)  # type: ignore[arg-type]
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
