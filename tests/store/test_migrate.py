"""The schema: made by migrations, the same as the code's tables, and never half made."""

import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pysqlite3.dbapi2
import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, inspect

from tarazu.store import migrate, sqlite
from tarazu.store.advisory_locks import MIGRATION_LOCK
from tarazu.store.availability import BooksUnavailableError
from tarazu.store.engine import open_engine, transaction
from tarazu.store.migrate import SCRIPTS, upgrade
from tarazu.store.revision import FIRST_TABLES, HEAD, current_revision
from tarazu.store.schema import metadata
from tarazu.store.sqlite import make_file
from tests.support.books import Books, sqlite_only
from tests.support.stores import Store
from tests.support.values import make_account

pytestmark = pytest.mark.both_stores

TABLES = {
    "accounts",
    "keys",
    "requests",
    "topups",
    "adjustments",
    "daily_usage",
    "idempotency_keys",
    "intake",
    "backend_rests",
    "refused_requests",
    "operators",
    "logins",
    "sessions",
    "devices",
    "pending_sign_ins",
    "second_factors",
    "invitations",
    "sign_in_failures",
    "admin_tokens",
    "creations",
    "acts",
    "alembic_version",
}


@pytest.fixture
def empty(tmp_path: Path) -> Engine:
    """Name a database that is not there yet."""
    return open_engine(f"sqlite:///{tmp_path / 'new.db'}")


def test_the_head_is_the_newest_migration() -> None:
    """The revision that the code works with is where the migrations end."""
    assert ScriptDirectory(str(SCRIPTS)).get_current_head() == HEAD


def test_an_empty_file_comes_to_the_head(empty: Engine) -> None:
    """The first start makes all tables, and says from where to where."""
    assert current_revision(empty) is None
    assert upgrade(empty) == (None, HEAD)
    assert current_revision(empty) == HEAD
    assert set(inspect(empty).get_table_names()) == TABLES
    empty.dispose()


def test_upgrading_twice_is_harmless(books: Books) -> None:
    """The second time nothing is done, and nothing is lost."""
    books.execute("UPDATE intake SET retry_after_s = 99")
    assert upgrade(books.engine) == (HEAD, HEAD)
    assert books.rows("SELECT retry_after_s FROM intake") == [(99,)]


def test_the_migrations_make_the_tables_that_the_code_declares(books: Books) -> None:
    """Alembic finds nothing to add, remove or change."""
    with transaction(books.engine, read_only=True) as connection:
        context = MigrationContext.configure(
            connection,
            opts={
                "compare_type": True,
                "compare_server_default": True,
                "render_as_batch": True,
                "include_name": _is_declared,
            },
        )
        assert compare_metadata(context, metadata) == []


@sqlite_only
def test_the_migrations_make_the_checks_that_the_code_declares(books: Books, empty: Engine) -> None:
    """CHECK constraints and foreign keys too, which Alembic does not compare: they are the last guard."""
    make_file(empty)
    with transaction(empty) as connection:
        metadata.create_all(connection)
    declared, migrated = inspect(empty), inspect(books.engine)
    for table in metadata.tables:
        assert _by_name(migrated.get_check_constraints(table)) == _by_name(declared.get_check_constraints(table))
        assert _by_name(migrated.get_foreign_keys(table)) == _by_name(declared.get_foreign_keys(table))
        assert _by_name(migrated.get_unique_constraints(table)) == _by_name(declared.get_unique_constraints(table))
    assert {each["name"] for each in migrated.get_check_constraints("accounts")} >= {
        "ck_accounts_used",
        "ck_accounts_balance",
    }
    empty.dispose()


def test_top_ups_of_the_release_before_name_nobody(books: Books) -> None:
    """It goes on beside these books: what it writes there counts, and leaves open who has done it."""
    books.add(make_account())
    books.execute(
        "INSERT INTO topups (id, account_id, credits, reference, note, created_at_ms)"
        " VALUES ('top_x', 'acc_1', 5, 'payment x', NULL, 1)"
    )
    books.execute("UPDATE accounts SET balance = balance + 5 WHERE id = 'acc_1'")
    assert books.rows("SELECT made_by FROM topups") == [(None,)]
    books.assert_balanced()


def test_a_revision_of_a_newer_release_is_refused(books: Books) -> None:
    """Old code does not run on new books; the message says what to do, and nothing is changed."""
    books.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(BooksUnavailableError, match=r"revision 9999, which this release does not know.*newer release"):
        upgrade(books.engine)
    assert current_revision(books.engine) == "9999"


def test_a_migration_that_fails_leaves_nothing_behind(empty: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """All in one transaction: after the cause is gone the same start works."""
    monkeypatch.setattr(migrate, "HEAD", "0001")
    assert upgrade(empty) == (None, "0001")
    with transaction(empty) as connection:
        connection.exec_driver_sql("CREATE TABLE sessions (other INTEGER)")
    monkeypatch.undo()
    with pytest.raises(BooksUnavailableError, match="table sessions already exists"):
        upgrade(empty)
    assert current_revision(empty) == "0001"
    assert "operators" not in inspect(empty).get_table_names()
    with transaction(empty) as connection:
        connection.exec_driver_sql("DROP TABLE sessions")
    assert upgrade(empty) == ("0001", HEAD)
    empty.dispose()


def test_tables_of_another_program_are_refused_and_stay(tmp_path: Path) -> None:
    """Whatever they are: the file is the same afterwards, byte for byte, and in its own mode."""
    for number, statement in enumerate(
        (
            "CREATE TABLE songs (title)",
            "CREATE TABLE accounts (id)",
            "CREATE TABLE alembic_version (version_num)",
            "CREATE TABLE alembic_version (version_num); INSERT INTO alembic_version VALUES ('0004')",
            "CREATE TABLE alembic_version (version_num); INSERT INTO alembic_version VALUES ('5d1c7b3e09aa')",
        )
    ):
        path = tmp_path / f"{number}.db"
        with closing(pysqlite3.dbapi2.connect(path)) as connection:
            connection.executescript(statement)
        before = path.read_bytes()
        engine = open_engine(f"sqlite:///{path}")
        for act in (upgrade, current_revision):
            with pytest.raises(BooksUnavailableError, match=f"{path} is a database of another program"):
                act(engine)
        engine.dispose()
        assert path.read_bytes()[: len(before)] == before, statement
        assert before[18:20] == b"\x01\x01"  # what the header says of a file that is not in WAL mode


@sqlite_only
@pytest.mark.parametrize("table", sorted(FIRST_TABLES))
def test_books_that_lack_a_table_are_told(books: Books, table: str) -> None:
    """A state of the code from before the first release made some without idempotency_keys."""
    books.execute("PRAGMA foreign_keys = OFF")
    books.execute(f"ALTER TABLE {table} RENAME TO elsewhere")
    for act in (upgrade, current_revision):
        with pytest.raises(BooksUnavailableError, match=f"not whole: they lack {table}"):
            act(books.engine)
    assert books.rows("SELECT version_num FROM alembic_version") == [(HEAD,)]


def test_two_that_start_together_migrate_once(tmp_path: Path) -> None:
    """The one that comes second waits, and finds the work done."""
    engines = [open_engine(f"sqlite:///{tmp_path / 'new.db'}") for _ in range(2)]
    revisions: list[tuple[str | None, str]] = []
    starters = [threading.Thread(target=lambda engine=engine: revisions.append(upgrade(engine))) for engine in engines]
    for starter in starters:
        starter.start()
    for starter in starters:
        starter.join()
    assert sorted(revisions, key=str) == [(HEAD, HEAD), (None, HEAD)]
    for engine in engines:
        engine.dispose()


def test_a_database_that_stays_locked_is_told(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a while of trying a person is told what is in the way; once it is gone the same command works."""
    monkeypatch.setattr(migrate, "PATIENCE_S", 0)
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_MS", 100)
    monkeypatch.setattr(migrate, "LOCK_TIMEOUT_MS", 100)
    other, engine = _two_on(store.nothing(tmp_path))
    with transaction(other) as connection:
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})")
        with pytest.raises(BooksUnavailableError, match=r"in use for 0 s.*Nothing was changed.*try again"):
            upgrade(engine)
    assert upgrade(engine) == (None, HEAD)
    other.dispose()
    engine.dispose()


def test_a_lock_that_is_given_up_meanwhile_is_got(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A migration that did not get its lock tries again by itself."""
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_MS", 100)
    monkeypatch.setattr(migrate, "LOCK_TIMEOUT_MS", 100)
    other, engine = _two_on(store.nothing(tmp_path))
    with ExitStack() as lock:
        connection = lock.enter_context(transaction(other))
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})")
        monkeypatch.setattr(time, "sleep", lambda _pause_s: lock.close())
        assert upgrade(engine) == (None, HEAD)
    other.dispose()
    engine.dispose()


def _two_on(url: str) -> tuple[Engine, Engine]:
    """Open a database without tables twice."""
    other, engine = open_engine(url), open_engine(url)
    if engine.dialect.name == "sqlite":
        make_file(engine)
    return other, engine


def test_the_revision_can_be_read_while_another_writes(books: Books) -> None:
    """Asking for the revision takes no write lock."""
    other = books.open_engine({})
    with transaction(other):
        assert current_revision(books.engine) == HEAD
    other.dispose()


def _by_name(constraints: Sequence[Any]) -> dict[str, Any]:
    return {each["name"]: each for each in constraints}


def _is_declared(name: str | None, kind: str, _parents: object) -> bool:
    """Leave out the partitions of `requests`."""
    return kind != "table" or name is None or not name.startswith("requests_")
