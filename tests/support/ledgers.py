"""Run ledgers in tests, and make many operations wait so that they come into one batch."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sqlalchemy import Connection, Engine

from tarazu.store.ledger import Ledger
from tests.support.books import Books

PAUSE_MAX_S = 20


@asynccontextmanager
async def running(books: Books, engine: Engine | None = None) -> AsyncIterator[Ledger]:
    """Run a ledger on the books (on `engine`, where it is to be another process's), and stop it at the end."""
    ledger = Ledger(engine or books.engine, books.catalogue, books.clock)
    ledger.start()
    try:
        yield ledger
    finally:
        await ledger.stop()


@asynccontextmanager
async def paused(ledger: Ledger) -> AsyncIterator[None]:
    """Keep the ledger's thread busy inside the block: what is asked for meanwhile waits, and is then one batch."""
    began, go_on = threading.Event(), threading.Event()

    def wait(_connection: Connection, _now_ms: int) -> None:
        began.set()
        assert go_on.wait(PAUSE_MAX_S)

    working = asyncio.ensure_future(ledger.work(wait))
    await asyncio.to_thread(began.wait, PAUSE_MAX_S)
    try:
        yield
        await asyncio.sleep(0)  # the tasks made inside the block take their first step, into the queue
    finally:
        go_on.set()
        await working
