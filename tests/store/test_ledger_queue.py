"""The ledger's queue: gathered when many ask, bounded, drained at the stop, and closed after it."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from tarazu.domain.credits import Hold
from tarazu.store.availability import BooksUnavailableError
from tarazu.store.batch import run_batch
from tarazu.store.ledger import CROWD, LedgerFullError
from tarazu.store.operations import Operation
from tests.support.books import Books
from tests.support.ledgers import charge, paused, running, settled
from tests.support.patience import PATIENCE_S
from tests.support.values import (
    DAY_MS,
    held,
    make_account,
    make_asked,
    make_key,
    present,
)

pytestmark = [pytest.mark.both_stores, pytest.mark.anyio]


@pytest.fixture
def books(books: Books) -> Books:
    """One account with two keys, on plan `basic`."""
    books.add(make_account(), make_key(1), make_key(2))
    return books


async def test_a_full_queue_refuses_and_endings_still_fit(books: Books, monkeypatch: pytest.MonkeyPatch) -> None:
    """Overload is a clear answer, but a hold that was let in can always end."""
    async with running(books) as ledger:
        holds = [held(await ledger.admit(make_asked())) for _ in range(3)]
        monkeypatch.setattr("tarazu.store.ledger.QUEUE_MAX", 2)
        async with paused(ledger):
            waiting = [asyncio.ensure_future(ledger.admit(make_asked())) for _ in range(2)]
            await asyncio.sleep(0)
            for operation in (ledger.admit(make_asked()), ledger.identify(present()), ledger.work(lambda *_: None)):
                with pytest.raises(LedgerFullError):
                    await operation
            charges = [asyncio.ensure_future(charge(ledger, hold)) for hold in holds[:2]]
            ledger.release(holds[2], tries=1)
        for admitted in waiting:
            held(await admitted)
        assert [await charged for charged in charges] == [True, True]
    assert books.states() == ["charged", "charged", "released", "held", "held"]
    books.assert_balanced()


async def test_a_crowd_is_gathered_and_a_few_are_not(books: Books, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a large batch the next begins only when no more come so soon; after a small one at once."""
    sizes: list[int] = []
    gathering, enough = threading.Event(), threading.Event()

    def recorded(connection: Any, operations: Sequence[Operation], *others: Any) -> list[Any]:
        sizes.append(len(operations))
        return run_batch(connection, operations, *others)

    def sleep(_seconds: float) -> None:
        gathering.set()
        assert enough.wait(PATIENCE_S)

    monkeypatch.setattr("tarazu.store.ledger.run_batch", recorded)
    monkeypatch.setattr("tarazu.store.ledger.sleep", sleep)
    async with running(books) as ledger:
        async with paused(ledger):
            crowd = [asyncio.ensure_future(ledger.admit(make_asked())) for _ in range(CROWD + 1)]
        await asyncio.gather(*crowd)
        assert not gathering.is_set()
        first = asyncio.ensure_future(ledger.admit(make_asked()))
        assert await asyncio.to_thread(gathering.wait, 20)
        others = [asyncio.ensure_future(ledger.admit(make_asked())) for _ in range(2)]
        await asyncio.sleep(0)
        enough.set()
        await asyncio.gather(first, *others)
        gathering.clear()
        held(await ledger.admit(make_asked()))
        assert not gathering.is_set()
    assert sizes[-3:] == [CROWD + 1, 3, 1]
    books.assert_balanced()


async def test_stopping_drains_what_waits(books: Books) -> None:
    """Everything that was asked for before the stop is done and answered, releases too."""
    async with running(books) as ledger:
        holds = [held(await ledger.admit(make_asked())) for _ in range(2)]
        async with paused(ledger):
            charged = asyncio.ensure_future(charge(ledger, holds[0]))
            admitted = [asyncio.ensure_future(ledger.admit(make_asked())) for _ in range(600)]
            await asyncio.sleep(0)
            ledger.release(holds[1], tries=1)
            stopping = asyncio.ensure_future(ledger.stop())
            await asyncio.sleep(0)
        await stopping
        assert charged.result() is True
        assert sum(isinstance(each.result().outcome, Hold) for each in admitted) == 99
    assert books.states()[:2] == ["charged", "released"]
    books.assert_balanced()


async def test_a_stopped_ledger_takes_nothing(books: Books) -> None:
    """Calls are refused as unavailable; a release is left to the sweep, without an error."""
    async with running(books) as ledger:
        hold = held(await ledger.admit(make_asked()))
        await ledger.stop()
        assert repr(ledger) == "<Ledger stopped, 0 waiting>"
        for operation in (
            ledger.admit(make_asked()),
            charge(ledger, hold),
            ledger.identify(present()),
            ledger.work(lambda *_: None),
        ):
            with pytest.raises(BooksUnavailableError, match="stopped"):
                await operation
        ledger.release(hold, tries=1)
    assert books.states() == ["held"]
    books.clock.now_ms += DAY_MS
    async with running(books) as ledger:
        await settled(ledger)
    assert books.states() == ["swept"]


async def test_a_ledger_shows_its_state(books: Books) -> None:
    """For whoever looks at a process that hangs."""
    async with running(books) as ledger:
        async with paused(ledger):
            waiting = asyncio.ensure_future(ledger.identify(present()))
            await asyncio.sleep(0)
            assert repr(ledger) == "<Ledger running, 1 waiting>"
        await waiting
