"""The audit beside the service: one at a time in a process, off the event loop."""

import asyncio
import threading
from pathlib import Path

import pytest

from tarazu.service.auditing import Auditor, AuditRunningError
from tarazu.store.availability import BooksUnavailableError
from tarazu.store.engine import open_engine
from tests.support.books import Books
from tests.support.patience import PATIENCE_S
from tests.support.values import NOON_MS, make_account

pytestmark = pytest.mark.both_stores


class HeldClock:
    """A clock that tells the time when it is let go: an audit that asks it is running, for as long as a test likes."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.go_on = threading.Event()

    def __call__(self) -> int:
        """Tell the time, at last."""
        self.asked.set()
        assert self.go_on.wait(PATIENCE_S)
        return NOON_MS


@pytest.fixture
def books(books: Books) -> Books:
    """Fill the books with one account."""
    books.add(make_account())
    return books


def test_one_at_a_time(books: Books) -> None:
    """While one runs another is refused at once, and the loop goes on; afterwards there is room again."""

    async def run() -> None:
        clock = HeldClock()
        auditor = Auditor(books.engine, clock)
        first = asyncio.create_task(auditor.run())
        assert await asyncio.to_thread(clock.asked.wait, PATIENCE_S)
        with pytest.raises(AuditRunningError):
            await auditor.run()
        assert repr(auditor) == "<Auditor running>"
        clock.go_on.set()
        assert ((await first).accounts, (await first).found) == (1, 0)
        assert (await auditor.run()).accounts == 1
        assert repr(auditor) == "<Auditor idle>"

    asyncio.run(run())


def test_who_leaves_does_not_end_it(books: Books) -> None:
    """Its place is taken until it has ended, and free then."""

    async def run() -> None:
        clock = HeldClock()
        auditor = Auditor(books.engine, clock)
        first = asyncio.create_task(auditor.run())
        assert await asyncio.to_thread(clock.asked.wait, PATIENCE_S)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        with pytest.raises(AuditRunningError):
            await auditor.run()
        clock.go_on.set()
        [thread] = [thread for thread in threading.enumerate() if thread.name == "audit"]
        await asyncio.to_thread(thread.join, PATIENCE_S)
        assert (await auditor.run()).accounts == 1

    asyncio.run(run())


def test_one_that_fails_makes_room(books: Books, tmp_path: Path) -> None:
    """Whoever asked is told why, and the next one is done."""

    async def run() -> None:
        away = open_engine(f"sqlite:///{tmp_path}/nowhere/books.db")
        auditor = Auditor(away, books.clock)
        for _ in range(2):
            with pytest.raises(BooksUnavailableError):
                await auditor.run()

    asyncio.run(run())
