"""Statements of the hot path: their text is made once for each store, and they run by it.

SQLAlchemy looks every statement up in a cache and arranges its parameters with much care, each time it is executed. For
the dozen small statements of a batch that took longer than the database itself.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from sqlalchemy import ClauseElement, Connection, CursorResult, Dialect


class _Text(Struct, frozen=True):
    sql: str
    names: Sequence[str] | None
    """The parameters in their order, where the driver counts them; None where it knows them by name."""
    fixed: Mapping[str, Any]
    """What the statement itself says."""
    processes: Mapping[str, Callable[[Any], Any]]
    """What makes the driver's values, where they are others than ours."""

    def arranged(self, values: Mapping[str, Any]) -> Any:
        whole = {**self.fixed, **values}
        for name, process in self.processes.items():
            whole[name] = process(whole[name])
        return whole if self.names is None else tuple(map(whole.__getitem__, self.names))


class Prepared:
    """A statement that is run often, with values for its bound parameters, or of `columns` where it names none."""

    def __init__(self, statement: ClauseElement, columns: Sequence[str] | None = None) -> None:
        """Take a statement that has no parameter which expands, and returns no type that SQLAlchemy converts."""
        self._statement = statement
        self._columns = columns
        self._texts: dict[str, _Text] = {}

    def run(self, connection: Connection, values: Mapping[str, Any]) -> CursorResult[*tuple[Any, ...]]:
        """Run it once."""
        text = self._text(connection.dialect)
        return connection.exec_driver_sql(text.sql, text.arranged(values))

    def run_many(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> CursorResult[*tuple[Any, ...]]:
        """Run it for each row, of which there is one at least."""
        text = self._text(connection.dialect)
        return connection.exec_driver_sql(text.sql, [text.arranged(row) for row in rows])

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
