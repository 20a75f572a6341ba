"""Run ledgers in tests, and make many operations wait so that they come into one batch."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sqlalchemy import Connection, Engine

from tarazu.domain.credits import Hold
from tarazu.store.ledger import Ledger
from tests.support.books import Books
from tests.support.patience import PATIENCE_S


@asynccontextmanager
async def running(books: Books, engine: Engine | None = None) -> AsyncIterator[Ledger]:
    """Run a ledger on the books (on `engine`, where it is to be another process's), and stop it at the end."""
    ledger = Ledger(engine or books.engine, books.catalogue, books.clock)
    ledger.start()
    try:
        yield ledger
    finally:
        await ledger.stop()


class Pause:
    """Work that keeps the ledger's thread inside its batch until it is told to go on."""

    def __init__(self) -> None:
        self._began = threading.Event()
        self.go_on = threading.Event()

    def __call__(self, _connection: Connection, _now_ms: int) -> None:
        """Say that the batch has begun, and wait."""
        self._began.set()
        assert self.go_on.wait(PATIENCE_S)

    async def begun(self) -> None:
        """Wait until the batch has begun."""
        assert await asyncio.to_thread(self._began.wait, PATIENCE_S)


@asynccontextmanager
async def paused(ledger: Ledger) -> AsyncIterator[None]:
    """Keep the ledger busy inside the block: the tasks made there put what they ask for into one batch, in order."""
    pause = Pause()
    pausing = asyncio.ensure_future(ledger.work(pause))
    await pause.begun()
    try:
        yield
        await asyncio.sleep(0)  # the tasks made inside the block take their first step, into the queue
    finally:
        pause.go_on.set()
        await pausing


async def charge(ledger: Ledger, hold: Hold) -> bool:
    """Charge a hold with some figures."""
    return await ledger.charge(hold, tries=1, prompt_tokens=10, completion_tokens=20)


async def settled(ledger: Ledger) -> None:
    """Wait until the ledger has done what was put into its queue, releases included."""
    await ledger.work(lambda _connection, _now_ms: None)
    await asyncio.sleep(0)  # what was released while answers were handed out is in the queue now
    await ledger.work(lambda _connection, _now_ms: None)
