"""Count what a transaction reads, on either store: no clock is asked, so it is the same on any machine."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Connection

from tests.support.statements import before_each


def rows_read(connection: Connection, tables: Iterable[str]) -> dict[str, int]:
    """Count the rows that this transaction has read in PostgreSQL; the partitions of a table are counted together."""
    query = "SELECT relname, seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables"
    counted = {name: int(rows or 0) for name, rows in connection.exec_driver_sql(query)}
    return {table: sum(rows for name, rows in counted.items() if name.startswith(table)) for table in tables}


@contextmanager
def plans(connection: Connection) -> Iterator[list[str]]:
    """Collect the steps by which the store carries the block's statements out, as its EXPLAIN tells them."""
    is_sqlite = connection.dialect.name == "sqlite"
    steps: list[str] = []

    def note(_cursor: object, statement: str, values: Any) -> None:
        explained = connection.connection.cursor()
        of_one = values[0] if isinstance(values, list) else values
        explained.execute(f"{'EXPLAIN QUERY PLAN' if is_sqlite else 'EXPLAIN'} {statement}", of_one)
        steps.extend(row[3 if is_sqlite else 0].strip() for row in explained.fetchall())
        explained.close()

    with pytest.MonkeyPatch.context() as patch:
        before_each(connection.dialect, note, patch)
        yield steps


@contextmanager
def steps_counted(connection: Connection) -> Iterator[list[None]]:
    """Collect an entry for every ten instructions that SQLite's machine carries out for the block."""
    steps: list[None] = []
    driver = connection.connection.dbapi_connection
    assert driver is not None
    driver.set_progress_handler(lambda: steps.append(None), 10)
    yield steps
    driver.set_progress_handler(None, 0)
