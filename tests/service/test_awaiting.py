"""PostgreSQL that is away when the service starts is waited for; what waiting does not mend is told at once."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url
from structlog.testing import capture_logs

from tarazu.service.books import make_books
from tarazu.store.availability import BooksUnavailableError
from tests.support.at_once import wait_until
from tests.support.patience import PATIENCE_S
from tests.support.pooler import pooler
from tests.support.stores import PostgresqlStore, restartable_server


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait less for a server that says nothing."""
    monkeypatch.setattr("tarazu.store.postgresql.CONNECT_TIMEOUT_S", 1)


@contextmanager
def directly(url: str, _folder: Path) -> Iterator[str]:
    """Reach the server by its own address."""
    yield url


@contextmanager
def through_a_pooler(url: str, folder: Path) -> Iterator[str]:
    """Reach it through one that goes on when the server is away."""
    with pooler(folder / "pooler", url, pool_mode="session", server_login_retry="1") as through:
        yield through


@contextmanager
def through_one_that_has_met_it(url: str, folder: Path) -> Iterator[str]:
    """Then the pooler lets anybody in without the server."""
    with through_a_pooler(url, folder) as through:
        with psycopg.connect(through) as met:
            met.execute("SELECT 1")
        yield through


@contextmanager
def through_one_that_asks_it_who_comes(url: str, folder: Path) -> Iterator[str]:
    """Then the pooler lets nobody in without the server, and says so at the door."""
    users = folder / "users.txt"
    users.write_text('"asks" ""\n')
    with psycopg.connect(url, autocommit=True) as server:
        server.execute("SET password_encryption = 'md5'")
        server.execute("CREATE ROLE asks SUPERUSER LOGIN; ALTER ROLE CURRENT_USER PASSWORD 'good'")
    asking = {
        "auth_type": "md5",
        "auth_file": str(users),
        "auth_user": "asks",
        "auth_query": "SELECT usename, passwd FROM pg_shadow WHERE usename = $1",
    }
    with pooler(folder / "pooler", url, pool_mode="session", server_login_retry="1", **asking) as open_to_all:
        through = make_url(open_to_all).set(password="good").render_as_string(hide_password=False)
        psycopg.connect(through).close()
        yield through


@pytest.mark.postgresql
@pytest.mark.parametrize(
    "reached",
    [
        directly,
        through_a_pooler,
        through_one_that_has_met_it,
        through_one_that_asks_it_who_comes,
    ],
)
def test_a_server_that_comes_later_is_waited_for(
    tmp_path: Path, reached: Callable[[str, Path], AbstractContextManager[str]]
) -> None:
    """With one line in the log; the start goes on when it is there."""
    with (
        restartable_server(tmp_path, in_memory=True) as server,
        reached(PostgresqlStore(server.url).new_books(tmp_path), tmp_path) as url,
    ):
        server.crash()
        with capture_logs() as logged, ThreadPoolExecutor(1) as thread:
            made = thread.submit(make_books, url)
            wait_until(lambda: bool(logged))
            server.start()
            made.result(PATIENCE_S)
    assert [line["event"] for line in logged] == ["database_awaited"]


@pytest.mark.postgresql
def test_a_pooler_is_not_blamed_for_a_server_that_is_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own refusals say so; only one that keeps no sessions is to be set otherwise."""
    monkeypatch.setattr("tarazu.service.books.AWAY_S", 0.1)
    with restartable_server(tmp_path, in_memory=True) as server:
        url = PostgresqlStore(server.url).new_books(tmp_path)
        with through_one_that_has_met_it(url, tmp_path) as through:
            server.crash()
            for _ in range(2):
                with pytest.raises(BooksUnavailableError, match=r"does not answer|server_login_retry") as refused:
                    make_books(through)
                assert "pool_mode" not in str(refused.value)


def test_a_server_that_stays_away_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a bounded time, with the reason."""
    monkeypatch.setattr("tarazu.service.books.AWAY_S", 0.1)
    with capture_logs() as logged, pytest.raises(BooksUnavailableError, match="The database failed: connection"):
        make_books(f"postgresql://tarazu@/tarazu?host={tmp_path}")
    assert len(logged) == 1


@pytest.mark.parametrize("wrong", [{"database": "not_there"}, {"username": "nobody_here"}])
def test_what_waiting_does_not_mend_is_told_at_once(
    postgresql_store: PostgresqlStore, tmp_path: Path, wrong: dict[str, str]
) -> None:
    """A database or a role that the server does not know: it answers, so it is there."""
    url = make_url(postgresql_store.nothing(tmp_path)).set(**wrong).render_as_string(hide_password=False)  # type: ignore[arg-type]  # a name
    with capture_logs() as logged, pytest.raises(BooksUnavailableError, match=next(iter(wrong.values()))):
        make_books(url)
    assert logged == []
