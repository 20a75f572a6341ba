"""A process tells the books what it refuses: soon, seldom, and whatever becomes of the books."""

import asyncio
from collections.abc import Coroutine

import pytest

from tarazu.domain.errors import Error, Refusal, Sender
from tarazu.domain.refused import TOLD
from tarazu.service.refused_requests import GATHER_S, RETRY_PAUSE_S, RefusedRequests
from tests.support.books import Books
from tests.support.inline_office import InlineOffice
from tests.support.values import make_account, make_key, present
from tests.support.virtual_time import run_in_virtual_time

pytestmark = pytest.mark.both_stores

SENDER = Sender("acc_1", present(1).id)
TOO_MANY = Refusal(error=Error.RATE_LIMIT_EXCEEDED, sender=SENDER)


@pytest.fixture
def books(books: Books) -> Books:
    """Fill the books with one account."""
    books.add(make_account(), make_key(1))
    return books


def told(books: Books) -> list[tuple[str, int]]:
    """List what the books tell: codes, and how many requests each."""
    return [tuple(row) for row in books.rows("SELECT code, requests FROM refused_requests ORDER BY code")]


class Process:
    """A process that refuses requests, and tells of it."""

    def __init__(self, books: Books) -> None:
        self.office = InlineOffice(books)
        self.refused = RefusedRequests(books.clock)

    def live(self, life: Coroutine[None, None, None]) -> None:
        """Live while it is told."""

        async def both() -> None:
            telling = asyncio.create_task(self.refused.tell(self.office))
            await life
            assert not telling.done()
            telling.cancel()

        run_in_virtual_time(both())


def test_what_is_refused_is_told_at_once_and_a_flood_seldom(books: Books) -> None:
    """However many come, they are one row and few writes, and none is missing."""
    process = Process(books)

    async def life() -> None:
        process.refused.note(TOO_MANY, None)
        await asyncio.sleep(GATHER_S / 2)
        assert told(books) == [("rate_limit_exceeded", 1)]
        for _ in range(100):
            process.refused.note(TOO_MANY, None)
            await asyncio.sleep(GATHER_S / 50)
        await asyncio.sleep(GATHER_S)
        assert told(books) == [("rate_limit_exceeded", 101)]
        assert process.office.changes <= 4
        await asyncio.sleep(100 * GATHER_S)
        assert process.office.changes <= 4

    process.live(life())


def test_nothing_is_forgotten_while_the_books_are_away(books: Books) -> None:
    """It is told once they are back."""
    process = Process(books)

    async def life() -> None:
        process.office.is_away = True
        process.refused.note(TOO_MANY, None)
        await asyncio.sleep(RETRY_PAUSE_S / 2)
        process.refused.note(TOO_MANY, None)
        process.refused.note(Refusal(error=Error.MODEL_NOT_FOUND, sender=SENDER), "gpt-4o")
        process.office.is_away = False
        await asyncio.sleep(RETRY_PAUSE_S)
        assert told(books) == [("model_not_found", 1), ("rate_limit_exceeded", 2)]

    process.live(life())


def test_other_refusals_are_not_told(books: Books) -> None:
    """Nor is one whose sender is not known."""
    process = Process(books)

    async def life() -> None:
        for error in set(Error) - TOLD:
            process.refused.note(Refusal(error=error, sender=SENDER), "small")
        for error in TOLD:
            process.refused.note(Refusal(error=error), "small")
        await asyncio.sleep(GATHER_S)
        assert process.office.changes == 0

    process.live(life())


def test_two_processes_add_to_one_row(books: Books) -> None:
    """What is alike is one thing to whoever reads the history."""
    first, second = Process(books), Process(books)

    async def life() -> None:
        for process in (first, second):
            process.refused.note(TOO_MANY, None)
            assert await process.refused.tell_now(process.office)

    first.live(life())
    assert told(books) == [("rate_limit_exceeded", 2)]
