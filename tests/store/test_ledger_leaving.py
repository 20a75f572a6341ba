"""Callers that leave: whenever it happens, no hold is left behind and nobody else is hurt."""

import asyncio

import pytest

from tarazu.domain.accounts import Window
from tests.support.books import Books
from tests.support.ledgers import Pause, charge, paused, running, settled
from tests.support.values import (
    MINUTE_MS,
    NOON_MS,
    held,
    make_account,
    make_asked,
    make_key,
)

pytestmark = [pytest.mark.both_stores, pytest.mark.anyio]


@pytest.fixture
def books(books: Books) -> Books:
    """One account with two keys, on plan `basic`."""
    books.add(make_account(), make_key(1), make_key(2))
    return books


async def test_a_caller_that_leaves_before_its_batch_begins_is_forgotten(books: Books) -> None:
    """No hold, and no place taken; a charge that has not begun gives way to the release that follows."""
    async with running(books) as ledger:
        hold = held(await ledger.admit(make_asked()))
        before = books.dump()
        async with paused(ledger):
            leaving = [asyncio.ensure_future(ledger.admit(make_asked())), asyncio.ensure_future(charge(ledger, hold))]
            await asyncio.sleep(0)
            for task in leaving:
                task.cancel()
        await settled(ledger)
        assert books.dump() == before
        ledger.release(hold, tries=1)
    assert books.states() == ["released"]
    books.assert_balanced()


async def test_a_caller_that_leaves_while_its_batch_runs_gets_its_hold_released(books: Books) -> None:
    """The admission is made all the same, and undone; whoever shares the batch is served."""
    async with running(books) as ledger:
        pause = Pause()
        async with paused(ledger):
            pausing = asyncio.ensure_future(ledger.work(pause))
            leaving = asyncio.ensure_future(ledger.admit(make_asked(model="large")))
            staying = asyncio.ensure_future(ledger.admit(make_asked()))
        await pause.begun()
        leaving.cancel()
        await asyncio.wait([leaving])
        pause.go_on.set()
        await pausing
        held(await staying)
        await settled(ledger)
        assert leaving.cancelled()
    assert books.states() == ["released", "held"]
    assert books.account() == make_account(used=1, window=Window(NOON_MS // MINUTE_MS, 2))
    books.assert_balanced()


async def test_a_caller_that_leaves_when_the_answer_is_there_gets_its_hold_released(books: Books) -> None:
    """Cancelled after the decision was handed over, before its turn to take it: no hold is left behind."""
    async with running(books) as ledger:

        async def cancel() -> None:
            # Answers are handed out in the order of the batch: when this one is told, the other's answer is there too.
            await ledger.work(lambda _connection, _now_ms: None)
            leaving.cancel()

        async with paused(ledger):
            cancelling = asyncio.ensure_future(cancel())
            leaving = asyncio.ensure_future(ledger.admit(make_asked(model="large")))
        await asyncio.wait([cancelling, leaving])
        assert leaving.cancelled()
        await settled(ledger)
    assert books.states() == ["released"]
    assert books.figures() == (0, 0)
    books.assert_balanced()


async def test_a_charge_that_has_begun_is_made_though_its_caller_leaves(books: Books) -> None:
    """It is in the books once, and a release that follows changes nothing."""
    async with running(books) as ledger:
        hold, pause = held(await ledger.admit(make_asked())), Pause()
        async with paused(ledger):
            pausing = asyncio.ensure_future(ledger.work(pause))
            leaving = asyncio.ensure_future(charge(ledger, hold))
        await pause.begun()
        leaving.cancel()
        await asyncio.wait([leaving])
        ledger.release(hold, tries=1)
        pause.go_on.set()
        await pausing
        await settled(ledger)
    assert books.states() == ["charged"]
    books.assert_balanced()
