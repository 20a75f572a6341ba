"""PostgreSQL behind PgBouncer: a pooler that keeps sessions serves, any other is refused."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event

import psycopg
import pytest
from sqlalchemy import Connection

from tarazu.store.availability import BooksUnavailableError
from tarazu.store.engine import open_engine, transaction
from tarazu.store.postgresql import CONNECTIONS_MAX, SETTINGS
from tests.support.books import Books, postgresql_only
from tests.support.pooler import pooler

pytestmark = postgresql_only

REFUSED = "pooler that gives a connection another session .* pool_mode = session"
IN_FORCE = {
    "statement_timeout": "10s",
    "lock_timeout": "5s",
    "idle_in_transaction_session_timeout": "10s",
    "timezone": "UTC",
    "random_page_cost": "1.1",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
}


def settings_in_force(connection: Connection) -> dict[str, str]:
    """Read what holds for a connection."""
    return {name: connection.exec_driver_sql(f"SHOW {name}").scalar_one() for name in SETTINGS}


def test_a_pooler_that_keeps_sessions_serves(books: Books, tmp_path: Path) -> None:
    """All connections of a process at once, one transaction after another, each held to all guards."""
    assert IN_FORCE.keys() == SETTINGS.keys()
    with pooler(tmp_path / "pooler", books.url, pool_mode="session") as url:
        engine = open_engine(url)
        for _ in range(2):
            with ExitStack() as stack:
                begun = [stack.enter_context(transaction(engine)) for _ in range(CONNECTIONS_MAX)]
                for connection in begun:
                    assert settings_in_force(connection) == IN_FORCE
        engine.dispose()


def test_what_another_client_has_set_is_not_taken_over(books: Books, tmp_path: Path) -> None:
    """A pooler that does not clean a session up hands it to us with another one's settings: ours are in force."""
    unclean = {"default_pool_size": "1", "server_reset_query": ""}
    with pooler(tmp_path / "pooler", books.url, pool_mode="session", **unclean) as url:
        with psycopg.connect(url, autocommit=True) as other:
            other.execute("SET statement_timeout = 0")
            other.execute("SET enable_seqscan = on")
        engine = open_engine(url)
        with transaction(engine) as connection:
            assert settings_in_force(connection) == IN_FORCE
        engine.dispose()


@pytest.mark.parametrize("is_in_turn", ["0", "1"])
@pytest.mark.parametrize("sessions", [1, 2, 5])
def test_a_pooler_that_keeps_no_sessions_is_refused(
    books: Books, tmp_path: Path, sessions: int, is_in_turn: str
) -> None:
    """However many sessions it has, whether it gives out the last one or the next, and whoever else is using it."""
    size = {"default_pool_size": str(sessions), "server_round_robin": is_in_turn}
    with pooler(tmp_path / "pooler", books.url, pool_mode="transaction", **size) as url:
        for _ in range(2):  # without sessions, and with those that others have left
            with asking(url, sessions - 1):
                assert_refused(url)
            open_sessions(url, sessions)
            assert_refused(url)


def test_a_pooler_of_single_statements_is_refused(books: Books, tmp_path: Path) -> None:
    """It would let no transaction begin."""
    with pooler(tmp_path / "pooler", books.url, pool_mode="statement") as url:
        assert_refused(url)


def test_a_server_without_a_pooler_is_asked_for_one_session_only(books: Books, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the name of the process that the server gives there is no pooler: a second connection is not made."""

    def connect_again(*_: object) -> None:
        pytest.fail("a second connection was made")

    monkeypatch.setattr("tarazu.store.postgresql._connect_briefly", connect_again)
    engine = open_engine(books.url)
    with transaction(engine) as connection:
        assert settings_in_force(connection) == IN_FORCE
    engine.dispose()


def assert_refused(url: str) -> None:
    """See that books cannot be opened through the pooler, and why."""
    engine = open_engine(url)
    with pytest.raises(BooksUnavailableError, match=REFUSED), transaction(engine):
        pass
    engine.dispose()


def open_sessions(url: str, count: int) -> None:
    """Have the pooler open so many sessions, which stay open when nobody needs them."""
    with ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(psycopg.connect(url)).execute("SELECT 1")


@contextmanager
def asking(url: str, clients: int) -> Iterator[None]:
    """Have others use the pooler meanwhile, one transaction after another."""
    ended = Event()

    def ask() -> None:
        with psycopg.connect(url, autocommit=True, prepare_threshold=None) as connection:
            while not ended.is_set():
                connection.execute("SELECT 1")

    with ThreadPoolExecutor(clients or 1) as threads:
        asked = [threads.submit(ask) for _ in range(clients)]
        try:
            yield
        finally:
            ended.set()
    for each in asked:
        each.result()
