"""A process tells of its backends' rests in the background: soon, seldom, and whatever becomes of the books."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from tarazu.backends.health import REST_MIN_S
from tarazu.backends.pool import Pool, PoolError
from tarazu.backends.port import Fault
from tarazu.service.resting import RETRY_PAUSE_S, WRITE_PAUSE_S, tell_rests
from tarazu.store.availability import BooksUnavailableError
from tarazu.store.backend_rests import BackendRest, read_rests
from tarazu.store.engine import transaction
from tarazu.store.ledger import Ledger
from tests.support.books import Books, open_books
from tests.support.pools import REQUEST, PlannedBackend, busy, make_pool
from tests.support.stores import SqliteStore
from tests.support.values import NOON_MS
from tests.support.virtual_time import run_in_virtual_time

DOWN = Fault.KEY_REFUSED
"""A fault after which the same backend is not asked again for the same request."""


@pytest.fixture
def books(sqlite_store: SqliteStore, tmp_path: Path) -> Iterator[Books]:
    """Open new books; their statements are tested on both stores elsewhere."""
    with open_books(sqlite_store, tmp_path) as books:
        yield books


class InlineLedger(Ledger):
    """Does its work on the real books where it is called, since a thread knows no virtual time; counts it."""

    def __init__(self, books: Books) -> None:
        super().__init__(books.engine, books.catalogue, books.clock)
        self._engine = books.engine
        self.at_s: list[float] = []
        self.is_away = False

    async def work(self, function: Callable[[Connection, int], Any]) -> Any:
        """Run it, unless the books are away."""
        self.at_s.append(asyncio.get_running_loop().time())
        if self.is_away:
            raise BooksUnavailableError("away")
        with transaction(self._engine) as connection:
            return function(connection, self._clock())


class Process:
    """A process with one model that tells of its rests."""

    def __init__(self, books: Books, *backends: PlannedBackend) -> None:
        self.books = books
        self.ledger = InlineLedger(books)
        self.changed = asyncio.Event()
        self.pool: Pool = make_pool(*backends, on_change=self.changed.set, jitter=0.0)

    def live(self, life: Coroutine[Any, Any, None]) -> None:
        """Live while the rests are told."""

        async def both() -> None:
            telling = asyncio.create_task(tell_rests(self.ledger, {"small": self.pool}, self.changed, "me"))
            await asyncio.sleep(WRITE_PAUSE_S)  # the first write, of nothing
            await life
            assert not telling.done()
            telling.cancel()

        run_in_virtual_time(both())

    async def ask(self, times: int = 1) -> None:
        """Ask the model."""
        for _ in range(times):
            with suppress(PoolError):
                await self.pool.ask(REQUEST)

    @property
    def rests(self) -> list[BackendRest]:
        """What the books say now, over or not."""
        with transaction(self.books.engine, read_only=True) as connection:
            return [BackendRest(**row) for row in connection.exec_driver_sql("SELECT * FROM backend_rests").mappings()]


def test_a_rest_is_told_at_once_with_its_fault_and_its_instants(books: Books) -> None:
    """By the clock of the books, however the loop counts."""
    process = Process(books, PlannedBackend("small#1", busy(300.0), takes_s=0.5))

    async def life() -> None:
        await process.ask()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        with transaction(books.engine, read_only=True) as connection:
            assert process.rests == read_rests(connection, books.clock())
        assert process.rests == [
            BackendRest(
                process_id="me",
                backend="small#1",
                model_id="small",
                state="busy",
                fault="busy",
                since_ms=NOON_MS,
                until_ms=NOON_MS + 300_000,
            )
        ]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tarazu.backends.pool.WAIT_SHARE_MAX", 0.01)  # nobody waits for the busy one
        process.live(life())


def test_a_backend_that_is_trusted_again_has_no_row(books: Books) -> None:
    """As soon as its trial has succeeded, before the rest would have been over."""
    backend = PlannedBackend("small#1", DOWN, takes_s=0.01)
    process = Process(books, backend)

    async def life() -> None:
        await process.ask(6)  # each failed trial doubles the rest
        await asyncio.sleep(WRITE_PAUSE_S)
        (rest,) = process.rests
        assert (rest.state, rest.fault) == ("tripped", "key_refused")
        assert rest.until_ms - NOON_MS > 2_000 * WRITE_PAUSE_S
        backend.plans = [None]
        await process.ask()
        await asyncio.sleep(WRITE_PAUSE_S)
        assert process.rests == []

    process.live(life())


def test_a_rest_that_is_over_is_taken_away_without_anybody_asking(books: Books) -> None:
    """The table of a service that is idle and well is empty."""
    process = Process(books, PlannedBackend("small#1", DOWN, takes_s=0.01))

    async def life() -> None:
        await process.ask(4)
        await asyncio.sleep(0.1)
        assert len(process.rests) == 1
        await asyncio.sleep(3 * REST_MIN_S)
        assert process.rests == []

    process.live(life())


def test_a_storm_of_changes_is_written_once_a_second(books: Books) -> None:
    """The newest state wins; and nothing is written while nothing changes."""
    backend = PlannedBackend("small#1", DOWN, takes_s=0.01)
    process = Process(books, backend)

    async def life() -> None:
        for _ in range(200):
            backend.plans = [DOWN]
            await process.ask(4)
            backend.plans = [None]
            await process.ask()
        backend.plans = [DOWN]
        await process.ask(6)
        await asyncio.sleep(WRITE_PAUSE_S)
        pauses = [later - sooner for sooner, later in zip(process.ledger.at_s, process.ledger.at_s[1:], strict=False)]
        assert len(pauses) >= 5
        assert min(pauses) > 0.99 * WRITE_PAUSE_S
        assert len(process.rests) == 1
        written = len(process.ledger.at_s)
        await asyncio.sleep(5 * WRITE_PAUSE_S)
        assert len(process.ledger.at_s) == written

    process.live(life())


def test_books_that_are_away_delay_nobody_and_get_the_newest_later(books: Books) -> None:
    """It is tried again, without haste."""
    process = Process(books, PlannedBackend("small#1", busy(300.0), takes_s=0.01), PlannedBackend("small#2"))

    async def life() -> None:
        process.ledger.is_away = True
        await process.ask()
        await asyncio.sleep(2.5 * RETRY_PAUSE_S)
        assert len(process.ledger.at_s) == 1 + 3
        assert process.rests == []
        process.ledger.is_away = False
        await asyncio.sleep(RETRY_PAUSE_S)
        assert [rest.backend for rest in process.rests] == ["small#1"]

    process.live(life())
