"""The database: which ones are accepted, and what its failures turn into."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import QueuePool, insert
from sqlalchemy.exc import IntegrityError

from tarazu.store.availability import BooksUnavailableError
from tarazu.store.engine import KeptConnection, open_engine, transaction
from tarazu.store.rows import account_row
from tarazu.store.schema import accounts
from tarazu.store.sqlite import LEAST_VERSION
from tests.support.at_once import wait_until
from tests.support.books import Books, postgresql_only, sqlite_only
from tests.support.values import make_account

pytestmark = pytest.mark.both_stores


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("tarazu.db", "not a URL"),
        ("", "not a URL"),
        ("mysql://localhost/tarazu", "mysql is not supported"),
        ("sqlite://", "must name a file"),
        ("sqlite:///", "must name a file"),
        ("sqlite:///:memory:", "must name a file"),
        ("sqlite:///file::memory:?cache=shared&uri=true", "must name a file"),
    ],
)
def test_a_url_that_cannot_hold_books_is_refused(url: str, reason: str) -> None:
    """With a reason that says what to write."""
    with pytest.raises(BooksUnavailableError, match=reason):
        open_engine(url)


def test_a_password_in_a_refused_url_is_not_repeated() -> None:
    """Credentials stay out of error texts."""
    with pytest.raises(BooksUnavailableError) as refusal:
        open_engine("mysql://user:hunter2@localhost/tarazu")
    assert "hunter2" not in str(refusal.value)


def test_sqlite_is_new_enough() -> None:
    """Versions up to 3.51.2 can corrupt a database in WAL mode."""
    assert LEAST_VERSION == (3, 51, 3)


def test_an_old_sqlite_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The message says how to get a newer one."""
    monkeypatch.setattr("pysqlite3.dbapi2.sqlite_version_info", (3, 51, 2))
    with pytest.raises(BooksUnavailableError, match=r"3\.51\.3 or newer: pip install"):
        open_engine(f"sqlite:///{tmp_path / 'new.db'}")


@postgresql_only
def test_a_database_that_sorts_as_a_dictionary_does_is_refused(books: Books, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids would not be in the order of their time there. The server of the tests knows no such rules: it is told so."""
    monkeypatch.setattr("tarazu.store.postgresql.SORTS_BY_BYTES", "SELECT 'B' > 'a'")
    engine = open_engine(books.url)
    with pytest.raises(BooksUnavailableError, match="LC_COLLATE 'C'"), transaction(engine):
        pass
    engine.dispose()


def test_a_kept_connection_serves_one_transaction_after_another(books: Books) -> None:
    """It is taken from the pool once, and what they write is there."""
    kept = KeptConnection(books.engine)
    with kept.transaction() as connection:
        connection.execute(insert(accounts), account_row(make_account()))
        first = connection.connection.dbapi_connection
    with kept.transaction() as connection:
        assert connection.connection.dbapi_connection is first
    assert connections_taken(books) == 1
    kept.close()
    assert connections_taken(books) == 0
    assert books.figures() == (0, 0)


def test_a_transaction_that_fails_gives_its_connection_back(books: Books) -> None:
    """Nothing of it is left, and the next one works."""
    kept = KeptConnection(books.engine)
    books.add(make_account())
    with pytest.raises(IntegrityError), kept.transaction() as connection:
        connection.execute(insert(accounts), account_row(make_account()))
    assert connections_taken(books) == 0
    with kept.transaction() as connection:
        connection.execute(insert(accounts), account_row(make_account(id="acc_2")))
    kept.close()


@postgresql_only
def test_a_kept_connection_is_replaced_when_others_have_found_the_database_away(books: Books) -> None:
    """As those in the pool are: whoever comes first after a restart is not the one who finds out."""
    kept = KeptConnection(books.engine)
    with kept.transaction(), transaction(books.engine):
        pass
    other = books.open_engine({})
    with transaction(other) as connection:
        connection.exec_driver_sql(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    other.dispose()
    with pytest.raises(BooksUnavailableError), transaction(books.engine) as connection:
        connection.exec_driver_sql("SELECT 1")
    with kept.transaction() as connection:
        assert connection.exec_driver_sql("SELECT 1").scalar_one() == 1
    kept.close()


def connections_taken(books: Books) -> int:
    """Count the connections that the pool has given out."""
    assert isinstance(books.engine.pool, QueuePool)
    return books.engine.pool.checkedout()


@sqlite_only
def test_connections_use_wal_and_enforce_foreign_keys(books: Books) -> None:
    """Readers do not wait for the writer, and no row hangs in the air."""
    assert books.rows("PRAGMA journal_mode") == [("wal",)]
    assert books.rows("PRAGMA foreign_keys") == [(1,)]


@sqlite_only
def test_the_log_that_has_grown_gives_its_room_back(books: Books, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a restore, or the time of a long backup, has left behind does not stay on disk."""
    monkeypatch.setattr("tarazu.store.sqlite.LOG_BYTES_KEPT_MAX", 100_000)
    log = Path(f"{books.engine.url.database}-wal")
    other = books.open_engine({})
    with transaction(other) as connection:
        connection.exec_driver_sql("CREATE TABLE large AS SELECT randomblob(5000000) AS content")
    assert log.stat().st_size > 5_000_000
    for _ in range(2):  # the first puts all of the log into the database, the second begins it anew
        with transaction(other) as connection:
            connection.exec_driver_sql("UPDATE intake SET retry_after_s = retry_after_s + 1")
    assert log.stat().st_size <= 100_000
    other.dispose()


@sqlite_only
@pytest.mark.parametrize(("relaxed", "synchronous"), [(False, 2), (True, 1)])
def test_only_a_relaxed_commit_may_be_lost_in_a_power_cut(books: Books, *, relaxed: bool, synchronous: int) -> None:
    """FULL (2) unless it was asked for NORMAL (1), also on a connection that was used otherwise before."""
    with transaction(books.engine, relaxed=not relaxed):
        pass
    with transaction(books.engine, relaxed=relaxed) as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar_one() == synchronous


@postgresql_only
def test_connections_to_postgresql_are_held_to_the_guards(books: Books) -> None:
    """Nothing waits or runs for ever, whatever the server's own settings are."""
    guards = {
        "statement_timeout": "10s",
        "lock_timeout": "5s",
        "idle_in_transaction_session_timeout": "10s",
        "TimeZone": "UTC",
        "application_name": "tarazu",
    }
    with transaction(books.engine) as connection:
        assert {name: connection.exec_driver_sql(f"SHOW {name}").scalar_one() for name in guards} == guards


@postgresql_only
@pytest.mark.parametrize("setting", ["fsync", "full_page_writes"])
def test_a_server_whose_crash_could_corrupt_the_books_is_refused(books: Books, setting: str) -> None:
    """With the reason and the remedy; with the setting back on, it is accepted."""
    with switched_off(books, setting):
        engine = open_engine(books.url)
        with pytest.raises(BooksUnavailableError, match=f"{setting} = off.* Set {setting} = on"), transaction(engine):
            pass
    with transaction(engine):
        pass
    engine.dispose()


@contextmanager
def switched_off(books: Books, setting: str) -> Iterator[None]:
    """Have the server run without a setting that it takes at any time."""

    def shown() -> str:
        return str(connection.exec_driver_sql(f"SHOW {setting}").scalar_one())

    server = books.engine.execution_options(isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        try:
            connection.exec_driver_sql(f"ALTER SYSTEM SET {setting} = off")
            connection.exec_driver_sql("SELECT pg_reload_conf()")
            wait_until(lambda: shown() == "off")
            yield
        finally:
            connection.exec_driver_sql(f"ALTER SYSTEM RESET {setting}")
            connection.exec_driver_sql("SELECT pg_reload_conf()")
            wait_until(lambda: shown() == "on")


@postgresql_only
def test_an_old_server_is_refused(books: Books, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says which one is needed."""
    monkeypatch.setattr("tarazu.store.postgresql.LEAST_VERSION", 10**6)
    engine = open_engine(books.url)
    with pytest.raises(BooksUnavailableError, match=r"too old; Tarazu needs 15 or newer"), transaction(engine):
        pass
    engine.dispose()


def test_a_transaction_is_committed_at_its_end(books: Books) -> None:
    """What was done in it is there afterwards, for others too."""
    books.add(make_account())
    other = books.open_engine({})
    with transaction(other, read_only=True) as connection:
        assert connection.exec_driver_sql("SELECT id FROM accounts").all() == [("acc_1",)]
    other.dispose()


def test_a_transaction_that_raises_has_no_effect(books: Books) -> None:
    """Whatever was raised is passed on, and everything is undone."""

    def work() -> None:
        with transaction(books.engine) as connection:
            connection.exec_driver_sql("UPDATE intake SET stopped = 1")
            raise KeyError

    with pytest.raises(KeyError):
        work()
    assert books.rows("SELECT stopped FROM intake") == [(0,)]


@sqlite_only
def test_a_transaction_that_the_database_has_rolled_back_is_not_taken_for_done(books: Books) -> None:
    """SQLite does so when its disk is full, and a COMMIT after it would be no error."""

    def work() -> None:
        with transaction(books.engine) as connection:
            connection.exec_driver_sql("UPDATE intake SET stopped = 1")
            connection.exec_driver_sql("ROLLBACK")

    with pytest.raises(BooksUnavailableError, match="rolled the transaction back"):
        work()
    books.add(make_account())
    assert books.rows("SELECT stopped FROM intake") == [(0,)]


def test_a_read_only_transaction_sees_one_state(books: Books) -> None:
    """What another commits meanwhile is not seen, and reading does not keep it from committing."""
    with transaction(books.engine, read_only=True) as reader:
        assert reader.exec_driver_sql("SELECT stopped FROM intake").scalar_one() == 0
        books.execute("UPDATE intake SET stopped = 1")
        assert reader.exec_driver_sql("SELECT stopped FROM intake").scalar_one() == 0
    assert books.rows("SELECT stopped FROM intake") == [(1,)]


def test_a_broken_rule_is_not_called_an_outage(books: Books) -> None:
    """It is our fault, and no reason to tell callers to come again."""
    with pytest.raises(IntegrityError):
        books.execute("UPDATE intake SET retry_after_s = 0")


def test_an_error_does_not_carry_the_values(books: Books) -> None:
    """An error's text may reach a log; what a row holds stays out of it."""
    books.add(make_account(email="person@example.com"))
    another = account_row(make_account(id="acc_2", email="person@example.com"))
    with pytest.raises(IntegrityError) as broken, transaction(books.engine) as connection:
        connection.execute(insert(accounts).values(another))
    assert "email" in str(broken.value)
    assert "person@example.com" not in str(broken.value)


def test_a_file_that_is_no_database_is_unavailable(tmp_path: Path) -> None:
    """It is reported, and left as it is."""
    path, content = tmp_path / "tarazu.db", b"No database, whatever the name says. " * 50
    path.write_bytes(content)
    engine = open_engine(f"sqlite:///{path}")
    with pytest.raises(BooksUnavailableError, match="not a database"), transaction(engine):
        pass
    assert path.read_bytes() == content
    engine.dispose()


def test_a_folder_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    """A wrong path in database.url."""
    engine = open_engine(f"sqlite:///{tmp_path}/missing/tarazu.db")
    reason = r"missing/tarazu\.db cannot be opened: No such file or directory"
    with pytest.raises(BooksUnavailableError, match=reason), transaction(engine):
        pass
    engine.dispose()


@sqlite_only
def test_a_lock_that_lasts_too_long_is_unavailable(books: Books) -> None:
    """Waiting is bounded; afterwards it works again."""
    books.pragmas["busy_timeout"] = 50
    other = books.open_engine({})
    with (
        transaction(other),
        pytest.raises(BooksUnavailableError, match="locked"),
        transaction(books.engine),
    ):
        pass
    with transaction(books.engine):
        pass
    other.dispose()


def test_running_out_of_connections_is_unavailable(books: Books) -> None:
    """A small, fixed number of connections, and a bounded wait for one."""
    books.engine.pool._timeout = 0.05  # type: ignore[attr-defined]
    connections = [books.engine.connect() for _ in range(4)]
    with pytest.raises(BooksUnavailableError, match="in use"), transaction(books.engine):
        pass
    for connection in connections:
        connection.close()
    with transaction(books.engine):
        pass
