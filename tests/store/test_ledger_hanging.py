"""When PostgreSQL hangs and says nothing: everybody is told in time, and the moment it goes on all is as before."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest
from sqlalchemy import make_url

from tarazu.domain.admission import Caller
from tarazu.store.availability import BooksUnavailableError
from tests.support.at_once import wait_until
from tests.support.books import Books, make_topup, postgresql_only
from tests.support.ledgers import charge, running
from tests.support.proxy import CuttingProxy
from tests.support.stores import Store
from tests.support.values import held, make_account, make_asked, make_key, present

pytestmark = [pytest.mark.anyio, postgresql_only]

STATEMENT_TIMEOUT_MS = 500
GRACE_S = 0.5
WAIT_MAX_S = 0.4
AWAY_WAIT_S = 0.1
AT_ONCE_S = 0.35
"""Less than anybody waits for books that are there."""
HEALTHY_S = 5

T = TypeVar("T")


@pytest.fixture
def proxy(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CuttingProxy]:
    """A proxy before the server. All waiting is shorter than in earnest."""
    monkeypatch.setattr("tarazu.store.postgresql._Connection.statement_timeout_ms", STATEMENT_TIMEOUT_MS)
    monkeypatch.setattr("tarazu.store.postgresql.ANSWER_GRACE_S", GRACE_S)
    monkeypatch.setattr("tarazu.store.postgresql.CONNECT_TIMEOUT_S", 2)  # the least that libpq knows
    monkeypatch.setattr("tarazu.store.ledger.WAIT_MAX_S", WAIT_MAX_S)
    monkeypatch.setattr("tarazu.store.ledger.AWAY_WAIT_S", AWAY_WAIT_S)
    folder = make_url(store.nothing(tmp_path)).query["host"]
    with CuttingProxy(Path(str(folder)) / ".s.PGSQL.5432") as proxy:
        yield proxy


@pytest.fixture
def hanging_books(books: Books, proxy: CuttingProxy) -> Iterator[Books]:
    """The books, by way of the proxy, with an account that has a key and a balance of 5."""
    books.add(make_account(), make_key(), make_topup(5))
    by_proxy = Books(proxy.url(books.url), books.catalogue)
    yield by_proxy
    by_proxy.engine.dispose()


async def served(ask: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Ask until the books are back, which must be soon."""
    async with asyncio.timeout(HEALTHY_S):
        while True:
            with suppress(BooksUnavailableError):
                return await ask()


async def test_who_waits_for_a_database_that_hangs_is_told_in_time(
    books: Books, hanging_books: Books, proxy: CuttingProxy
) -> None:
    """The first after the longest wait that there is, all others at once; once it goes on, all are served."""
    async with running(hanging_books) as ledger:
        held(await ledger.admit(make_asked()))
        with proxy.hanging():
            with pytest.raises(BooksUnavailableError, match="not answered in time"):
                await ledger.admit(make_asked())
            until_s = time.monotonic() + 2 * (STATEMENT_TIMEOUT_MS / 1_000 + GRACE_S)
            while time.monotonic() < until_s:  # the connection is given up, and others are tried
                for ask in (ledger.admit(make_asked()), ledger.identify(present())):
                    begun_s = time.monotonic()
                    with pytest.raises(BooksUnavailableError):
                        await ask
                    assert time.monotonic() - begun_s < AT_ONCE_S
        assert isinstance(await served(lambda: ledger.identify(present())), Caller)
        held(await ledger.admit(make_asked()))
    assert books.figures()[0] == books.states().count("held")
    books.assert_balanced()


async def test_a_connection_that_hangs_is_given_up(hanging_books: Books, proxy: CuttingProxy) -> None:
    """A server that keeps to none of its time-outs holds the ledger for no longer than one statement may take."""
    async with running(hanging_books) as ledger:
        hold = held(await ledger.admit(make_asked()))
        with proxy.hanging():
            begun_s = time.monotonic()
            with pytest.raises(BooksUnavailableError, match="the server does not answer"):
                await charge(ledger, hold)
            assert time.monotonic() - begun_s < STATEMENT_TIMEOUT_MS / 1_000 + GRACE_S + 1
        assert await served(lambda: charge(ledger, hold)) is True
    hanging_books.assert_balanced()


async def test_a_decision_that_came_too_late_is_undone(books: Books, hanging_books: Books, proxy: CuttingProxy) -> None:
    """Its caller was told 503, so the hold that is made after all is released at once, and not left to the sweep."""
    async with running(hanging_books) as ledger:
        held(await ledger.admit(make_asked()))
        with proxy.hanging(), pytest.raises(BooksUnavailableError, match="not answered in time"):
            await ledger.admit(make_asked())
        await asyncio.to_thread(wait_until, lambda: books.states() == ["held", "released"], timeout_s=HEALTHY_S)
    assert books.figures() == (1, 5)
    books.assert_balanced()
