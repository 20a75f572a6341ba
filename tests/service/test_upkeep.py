"""What the process does for the books from time to time."""

import asyncio

from tarazu.domain.attempts import Rule
from tarazu.domain.bounds import Bounds
from tarazu.domain.idempotency import idempotency_of
from tarazu.service.upkeep import ENDED_INTERVAL_S, ENDED_PAUSE_S, REPLIES_INTERVAL_S, bound_replies, sweep_ended
from tarazu.store.ended import ENDED_MAX
from tarazu.store.engine import transaction
from tarazu.store.operations import Admit
from tarazu.store.sign_in_failures import count_failure
from tests.support.books import Books, charge, sqlite_only
from tests.support.inline_office import InlineOffice
from tests.support.people_values import digest
from tests.support.values import NOON_MS, held, make_account, make_asked, make_catalogue, make_key
from tests.support.virtual_time import run_in_virtual_time


async def rows_after(books: Books, seconds: float) -> int:
    """Count the rows a while later."""
    await asyncio.sleep(seconds)
    number: int = books.rows("SELECT count(*) FROM sign_in_failures")[0][0]
    return number


def test_what_has_ended_goes_at_once_and_then_from_time_to_time(books: Books) -> None:
    """In bounded bites, one soon after the other while there is more; what has not ended stays."""
    ended = {digest(number): Rule(5, 1, 1) for number in range(ENDED_MAX + 1)}
    with transaction(books.engine) as connection:
        count_failure(connection, {**ended, digest(9_999): Rule(5, 2, 1)}, NOON_MS)
    books.clock.now_ms += 1

    async def run() -> None:
        sweeping = asyncio.create_task(sweep_ended(InlineOffice(books)))
        assert await rows_after(books, ENDED_PAUSE_S / 2) == 2
        assert await rows_after(books, ENDED_PAUSE_S) == 1
        books.clock.now_ms += 1
        assert await rows_after(books, ENDED_INTERVAL_S - ENDED_PAUSE_S) == 1
        assert await rows_after(books, ENDED_PAUSE_S) == 0
        sweeping.cancel()

    run_in_virtual_time(run())


def test_replies_beyond_the_bound_for_all_are_dropped_from_time_to_time(books: Books) -> None:
    """The oldest, now and every half a minute; the bound is the one of the newest configuration."""
    books.catalogue = make_catalogue(bounds=Bounds(reply_bytes=70))
    books.add(make_account(), make_key())
    office = InlineOffice(books)

    def kept() -> int:
        number: int = books.rows("SELECT count(*) FROM idempotency_keys WHERE reply IS NOT NULL")[0][0]
        return number

    def keep(name: str) -> None:
        hold = held(books.run(Admit(make_asked(idempotency=idempotency_of(name, b"{}"))))[0])
        books.run(charge(hold, reply=b"x" * 30))
        books.clock.now_ms += 1

    async def run() -> None:
        for name in "abc":
            keep(name)
        dropping = asyncio.create_task(bound_replies(office))
        await asyncio.sleep(1)
        assert kept() == 2
        keep("d")
        await asyncio.sleep(REPLIES_INTERVAL_S - 2)
        assert kept() == 3
        office.catalogue = make_catalogue(bounds=Bounds(reply_bytes=30))
        await asyncio.sleep(2)
        assert kept() == 1
        dropping.cancel()

    run_in_virtual_time(run())
    assert books.rows("SELECT key FROM idempotency_keys WHERE reply IS NOT NULL") == [("d",)]
    books.assert_balanced()


@sqlite_only
def test_a_sweep_that_fails_is_tried_again(books: Books) -> None:
    """While nothing can be written it goes on in its rhythm, and does its work afterwards."""
    with transaction(books.engine) as connection:
        count_failure(connection, {digest(1): Rule(5, 1, 1)}, NOON_MS)
    books.clock.now_ms += 1
    books.pragmas["query_only"] = 1

    async def run() -> None:
        sweeping = asyncio.create_task(sweep_ended(InlineOffice(books)))
        assert await rows_after(books, ENDED_PAUSE_S) == 1
        books.pragmas["query_only"] = 0
        assert await rows_after(books, ENDED_INTERVAL_S) == 0
        sweeping.cancel()

    run_in_virtual_time(run())
