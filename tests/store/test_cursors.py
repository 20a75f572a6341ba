"""No cursor outlives its transaction (SQLite): whoever forgets an error would wait for the next user's statement."""

import threading
from collections.abc import Callable
from typing import Any

import pysqlite3.dbapi2
import pytest
from sqlalchemy import Engine, event, insert

from tarazu.store.accounts import list_accounts
from tarazu.store.availability import BooksUnavailableError
from tarazu.store.batch import run_batch
from tarazu.store.engine import open_engine, transaction
from tarazu.store.operations import Admit
from tarazu.store.rows import account_row
from tarazu.store.schema import accounts
from tests.support.books import Books, sqlite_only
from tests.support.patience import PATIENCE_S
from tests.support.values import NOON_MS, held, make_account, make_asked, make_catalogue, make_key

pytestmark = sqlite_only


class Watch:
    """Lets one statement fail, and keeps what is then still open when a connection goes back to the pool."""

    def __init__(self) -> None:
        self.fails_at = 0
        self.statements = 0
        self.cursors: list[Cursor] = []
        self.left_open: list[str] = []

    def count(self) -> None:
        """Count a statement, which fails when it is the one."""
        self.statements += 1
        if self.statements == self.fails_at:
            error = pysqlite3.dbapi2.OperationalError("locking protocol")
            error.sqlite_errorname = "SQLITE_PROTOCOL"
            raise error

    def check_in(self, *_: object) -> None:
        """Note which cursors are open."""
        self.left_open += [cursor.text for cursor in self.cursors if not cursor.is_closed]
        self.cursors.clear()


class Cursor(pysqlite3.dbapi2.Cursor):  # type: ignore[misc]  # has no types
    """A cursor that tells whether it was closed, and of what statement it was."""

    watch: Watch
    is_closed = False
    text = ""

    def execute(self, text: str, *values: object) -> Any:
        """Run a statement, unless it is to fail."""
        self.text = text
        self.watch.count()
        return super().execute(text, *values)

    def executemany(self, text: str, *values: object) -> Any:
        """Run a statement for many rows, unless it is to fail."""
        self.text = text
        self.watch.count()
        return super().executemany(text, *values)

    def close(self) -> None:
        """Close it."""
        self.is_closed = True
        super().close()


def reads(engine: Engine) -> None:
    """Read through SQLAlchemy."""
    with transaction(engine, read_only=True) as connection:
        assert len(list_accounts(connection)) >= 1


def writes(engine: Engine) -> None:
    """Write through SQLAlchemy, without waiting for the disk."""
    with transaction(engine, relaxed=True) as connection:
        connection.execute(insert(accounts), account_row(make_account(id="acc_2")))


def decides(engine: Engine) -> None:
    """Run a batch, whose statements are prepared."""
    with transaction(engine) as connection:
        [decision] = run_batch(connection, [Admit(make_asked(1, "small"))], make_catalogue(), NOON_MS)
    held(decision)


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    """Watch all cursors of connections that are made from now on."""
    watch = Watch()

    class Connection(pysqlite3.dbapi2.Connection):  # type: ignore[misc]  # has no types
        def cursor(self, *_: object) -> Cursor:
            cursor: Cursor = super().cursor(Cursor)
            cursor.watch = watch
            watch.cursors.append(cursor)
            return cursor

        def close(self) -> None:
            super().close()
            watch.cursors.clear()  # they have ended with it

    connect = pysqlite3.dbapi2.connect
    monkeypatch.setattr(pysqlite3.dbapi2, "connect", lambda *a, **k: connect(*a, factory=Connection, **k))
    return watch


@pytest.mark.parametrize("work", [reads, writes, decides])
def test_every_cursor_is_closed_whichever_statement_fails(
    books: Books, watch: Watch, work: Callable[[Engine], None]
) -> None:
    """Also those that open the file, guard the connection and begin."""
    books.add(make_account(), make_key(1))
    while watch.statements >= watch.fails_at:
        watch.fails_at += 1
        watch.statements = 0
        engine = open_engine(books.url)
        event.listen(engine, "checkin", watch.check_in)
        try:
            work(engine)
        except BooksUnavailableError:
            assert watch.statements == watch.fails_at
        engine.dispose()
    assert watch.fails_at > len(["look", "guard", "begin", "work"])
    assert watch.left_open == []


def test_to_forget_an_error_waits_for_nobody(books: Books) -> None:
    """While another thread is in a statement on the connection on which it came."""
    books.add(make_account(), make_key(1))
    books.pragmas["query_only"] = 1
    with pytest.raises(BooksUnavailableError) as failed:
        books.admit()
    errors = [failed.value]
    del failed
    is_running, is_forgotten = threading.Event(), threading.Event()

    def wait() -> bool:
        is_running.set()
        return is_forgotten.wait(PATIENCE_S)

    def runs() -> None:
        with transaction(books.engine, read_only=True) as connection:
            connection.connection.dbapi_connection.create_function("wait", 0, wait)  # type: ignore[union-attr]
            waited.append(connection.exec_driver_sql("SELECT wait()").scalar_one())

    waited: list[int] = []
    thread = threading.Thread(target=runs)
    thread.start()
    assert is_running.wait(PATIENCE_S)
    errors.clear()
    is_forgotten.set()
    thread.join()
    assert waited == [1]
