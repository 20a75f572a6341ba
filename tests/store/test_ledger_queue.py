"""The ledger's queue: bounded, drained at the stop, and closed after it."""

import asyncio

import pytest

from tarazu.domain.credits import Hold
from tarazu.store.availability import BooksUnavailableError
from tarazu.store.ledger import LedgerFullError
from tests.support.books import Books
from tests.support.ledgers import charge, paused, running, settled
from tests.support.values import (
    DAY_MS,
    held,
    make_account,
    make_asked,
    make_key,
    present,
)

pytestmark = pytest.mark.anyio


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
