"""Reading for long: one state of the books, tables aside, and time-outs of its own."""

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Column, Integer, MetaData, Table, event, func, insert, select

from tarazu.store.audit import audit
from tarazu.store.availability import BooksUnavailableError
from tarazu.store.engine import transaction
from tarazu.store.postgresql import SETTINGS
from tarazu.store.schema import accounts
from tarazu.store.snapshot import ASIDE, IN_MEMORY, snapshot
from tests.support.books import Books, sqlite_only
from tests.support.values import make_account

pytestmark = pytest.mark.both_stores

postgresql_only = pytest.mark.parametrize("store_kind", ["postgresql"], indirect=True)

tables = MetaData()
aside = Table("numbers", tables, Column("number", Integer), schema=ASIDE)
in_memory = Table("few_numbers", tables, Column("number", Integer), schema=IN_MEMORY)

STATEMENT_TIMEOUT_MS = 200


@pytest.fixture
def slow_books(books: Books, monkeypatch: pytest.MonkeyPatch) -> Books:
    """Open books whose statements may take 200 ms, and which sleep for 300 ms before each that adds up a slice."""
    monkeypatch.setitem(SETTINGS, "statement_timeout", str(STATEMENT_TIMEOUT_MS))
    books.engine.dispose()
    books.engine = books.open_engine({})

    @event.listens_for(books.engine, "before_cursor_execute")
    def _sleep(_connection: object, cursor: Any, statement: str, *_: object) -> None:
        if "slice_sums" in statement:
            cursor.execute("SELECT pg_sleep(0.3)")

    return books


def count_accounts(books: Books, *, meanwhile: str) -> tuple[int, int]:
    """Count accounts in a snapshot before and after another connection does something."""
    query = select(func.count()).select_from(accounts)
    with snapshot(books.engine, tables) as connection:
        before = connection.execute(query).scalar_one()
        books.execute(meanwhile)
        return before, connection.execute(query).scalar_one()


def test_a_snapshot_stays_the_same_and_keeps_nobody_from_writing(books: Books) -> None:
    """What is committed meanwhile is not seen."""
    books.add(make_account())
    assert count_accounts(books, meanwhile="DELETE FROM accounts") == (1, 1)
    assert books.rows("SELECT id FROM accounts") == []


def test_a_snapshot_is_taken_while_another_writes(books: Books) -> None:
    """It waits for no lock."""
    other = books.open_engine({})
    with transaction(other) as writer, snapshot(books.engine, tables) as connection:
        writer.exec_driver_sql("UPDATE intake SET stopped = 1")
        assert connection.exec_driver_sql("SELECT stopped FROM intake").scalar_one() == 0
    other.dispose()


@pytest.mark.parametrize("table", [aside, in_memory])
def test_tables_aside_are_written_to_and_gone_afterwards(books: Books, table: Table) -> None:
    """The next snapshot has them new, and others never see them."""
    for _ in range(2):
        with snapshot(books.engine, tables) as connection:
            assert connection.execute(select(table)).all() == []
            connection.execute(insert(table).values(number=1))
            assert connection.execute(select(table)).all() == [(1,)]
    with pytest.raises(Exception, match=r"no such table|does not exist"):
        books.rows(f"SELECT * FROM {table.name}")  # noqa: S608


@postgresql_only
def test_the_books_cannot_be_written_to(books: Books) -> None:
    """Only the tables aside can; SQLite has no such guard."""
    with pytest.raises(Exception, match="read-only"), snapshot(books.engine, tables) as connection:
        connection.exec_driver_sql("UPDATE intake SET stopped = 1")
    assert books.rows("SELECT stopped FROM intake") == [(0,)]


def test_other_connections_have_no_settings_of_it(books: Books) -> None:
    """The connection is closed; the pool has as many as before."""
    for _ in range(6):
        with snapshot(books.engine, tables):
            pass
    engine = books.engine
    connections = [engine.connect() for _ in range(4)]
    for connection in connections:
        if engine.dialect.name == "postgresql":
            assert connection.exec_driver_sql("SHOW statement_timeout").scalar_one() == "10s"
        else:
            assert [row[1] for row in connection.exec_driver_sql("PRAGMA database_list")] == ["main"]
        connection.close()


@sqlite_only
def test_tables_aside_are_in_a_file_without_a_name(
    books: Books, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In the folder that TMPDIR names: it takes no memory, and is gone even when the process is killed."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    with snapshot(books.engine, tables) as connection:
        files = [Path(f"/proc/self/fd/{number.name}") for number in Path("/proc/self/fd").iterdir()]
        names = [str(file.readlink()) for file in files if file.is_symlink()]
        assert [name for name in names if name.startswith(str(folder)) and name.endswith("(deleted)")]
        assert list(folder.iterdir()) == []
        connection.execute(insert(aside).values(number=1))
    assert list(folder.iterdir()) == []


@sqlite_only
def test_a_folder_that_cannot_be_written_to_is_told(
    books: Books, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The books are well, but there is no room beside them."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    with pytest.raises(BooksUnavailableError, match="No room beside the books"), snapshot(books.engine, tables):
        pass


@postgresql_only
def test_an_audit_outlives_the_time_of_an_ordinary_statement(slow_books: Books) -> None:
    """Of millions of requests it takes longer than any statement of the service may."""
    with pytest.raises(BooksUnavailableError, match="statement timeout"):
        slow_books.rows("SELECT pg_sleep(0.3)")
    assert audit(slow_books.engine, overdue_before_ms=0).found == 0


@postgresql_only
def test_an_audit_waits_for_the_server_as_long_as_its_statements_may_take(books: Books) -> None:
    """It is not taken for a server that hangs; the next connection is, after the usual time."""
    with snapshot(books.engine, tables) as connection:
        assert connection.connection.dbapi_connection.statement_timeout_ms == 3_600_000  # type: ignore[union-attr]  # is ours
    with transaction(books.engine) as connection:
        assert connection.connection.dbapi_connection.statement_timeout_ms == 10_000  # type: ignore[union-attr]  # is ours


@postgresql_only
def test_the_statements_of_an_audit_end_too(slow_books: Books, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their time is longer, and bounded."""
    monkeypatch.setattr("tarazu.store.postgresql.LONG_STATEMENT_TIMEOUT_MS", 100)
    with pytest.raises(BooksUnavailableError, match="statement timeout"):
        audit(slow_books.engine, overdue_before_ms=0)
