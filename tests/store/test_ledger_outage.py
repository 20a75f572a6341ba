"""When the database fails: every caller is told, nothing is changed or half changed, and afterwards it works again."""

import asyncio
import re
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest
from sqlalchemy import Connection
from structlog.testing import capture_logs

from tarazu.domain.accounts import Intake
from tarazu.domain.admission import Caller, Decision
from tarazu.store.availability import BooksUnavailableError
from tarazu.store.engine import transaction
from tarazu.store.intake import write_intake
from tarazu.store.topups import insert_topup
from tests.support.books import TABLES, Books, make_topup, postgresql_only, sqlite_only
from tests.support.ledgers import charge, paused, running
from tests.support.values import DAY_MS, held, make_account, make_asked, make_catalogue, make_key, make_plan, present

pytestmark = [pytest.mark.both_stores, pytest.mark.anyio]

NO_PAGE_LIMIT = 4_294_967_294
LOCK_TIMEOUT_MS = 50
FULL = """
CREATE FUNCTION fill_up() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    RAISE disk_full USING MESSAGE = 'could not extend file "base/5/1259": No space left on device';
END $$
"""


def is_postgresql(books: Books) -> bool:
    """Tell which kind of database it is."""
    return books.engine.dialect.name == "postgresql"


@pytest.fixture
def books(books: Books) -> Books:
    """One account with a key, a large quota and a balance of 5; nobody waits long for a lock."""
    books.pragmas["lock_timeout" if is_postgresql(books) else "busy_timeout"] = LOCK_TIMEOUT_MS
    books.catalogue = make_catalogue(plans=[make_plan(monthly_credits=10**6, requests_per_minute=10**6)])
    books.add(make_account(), make_key(), make_topup(5))
    return books


@contextmanager
def locked(books: Books) -> Iterator[None]:
    """Let another process keep the write lock, or lock all rows, for longer than anybody waits."""
    other = books.open_engine({})
    with transaction(other) as connection:
        if is_postgresql(books):
            connection.exec_driver_sql(f"LOCK TABLE {', '.join(TABLES)} IN EXCLUSIVE MODE")
        yield
    other.dispose()


@contextmanager
def read_only(books: Books) -> Iterator[None]:
    """Let each write be answered as on a read-only file, or as by a server that stands by for another."""
    setting = "transaction_read_only" if is_postgresql(books) else "query_only"
    books.pragmas[setting] = 1
    yield
    books.pragmas[setting] = 0


@contextmanager
def full(books: Books) -> Iterator[None]:
    """Let the database file not grow any more; or let the server say at each write that its disk is full."""
    if is_postgresql(books):
        with server_full(books):
            yield
        return
    books.pragmas["max_page_count"] = 1  # SQLite takes this as: no larger than it is
    yield
    books.pragmas["max_page_count"] = NO_PAGE_LIMIT


@contextmanager
def server_full(books: Books) -> Iterator[None]:
    """Let the real server raise its own error for it; nobody else's database is harmed."""
    books.execute(FULL)
    for table in TABLES:
        books.execute(f"CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON {table} EXECUTE FUNCTION fill_up()")
    yield
    books.execute("DROP FUNCTION fill_up CASCADE")


Outage = Callable[[Books], AbstractContextManager[None]]


def top_up(connection: Connection, _now_ms: int) -> None:
    """Add 7 credits."""
    insert_topup(connection, make_topup(7))


def fill(connection: Connection, _now_ms: int) -> None:
    """Write until the file cannot hold it."""
    for _ in range(1_000):
        insert_topup(connection, make_topup(1, note="x" * 3_000))


async def answer_to(call: Coroutine[Any, Any, Decision]) -> Decision | BooksUnavailableError:
    """Await an answer or the failure."""
    try:
        return await call
    except BooksUnavailableError as error:
        return error


async def assert_unavailable(*calls: Coroutine[Any, Any, Any], reason: str = "") -> None:
    """Await all at once: each must say that the books are unavailable, and why."""
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(answer) for answer in answers] == [BooksUnavailableError] * len(calls), answers
    assert all(reason in str(answer) for answer in answers), answers


@pytest.mark.parametrize("outage", [locked, read_only])
async def test_an_outage_is_told_to_everybody_and_changes_nothing(books: Books, outage: Outage) -> None:
    """Admission, charge and top-up, alone and in one batch; afterwards the same calls go through."""
    await assert_outage_changes_nothing(books, outage)


@postgresql_only
async def test_a_full_disk_of_the_server_is_told_to_everybody_and_changes_nothing(books: Books) -> None:
    """The same where PostgreSQL has no room: an outage, and no fault of whoever asks."""
    await assert_outage_changes_nothing(books, full)


async def assert_outage_changes_nothing(books: Books, outage: Outage) -> None:
    """Ask for all there is during the outage and after it."""
    async with running(books) as ledger:
        hold = held(await ledger.admit(make_asked()))
        before = books.dump()
        with outage(books):
            with capture_logs() as logged:
                await assert_unavailable(ledger.admit(make_asked()))
            (reason,) = {line["reason"] for line in logged if line["event"] == "ledger_batch_failed"}
            assert re.fullmatch(r"(The|All) [^\n]*\.", reason), reason  # our sentence, and no name of a class
            await assert_unavailable(charge(ledger, hold))
            await assert_unavailable(ledger.work(top_up))
            await assert_unavailable(ledger.admit(make_asked()), charge(ledger, hold), ledger.work(top_up))
            assert books.dump() == before
        held(await ledger.admit(make_asked()))
        assert await charge(ledger, hold) is True
        await ledger.work(top_up)
    assert (books.states(), books.figures()) == (["charged", "held"], (2, 12))
    books.assert_balanced()


@pytest.mark.parametrize("outage", [locked, read_only, full])
async def test_who_calls_can_be_told_while_nothing_can_be_written(books: Books, outage: Outage) -> None:
    """Reading needs no lock and no space: the GET endpoints go on."""
    async with running(books) as ledger:
        with outage(books):
            assert isinstance(await ledger.identify(present()), Caller)


@pytest.mark.parametrize("outage", [locked, read_only])
async def test_a_release_in_an_outage_is_left_to_the_sweep(books: Books, outage: Outage) -> None:
    """It is not an error for anybody; the credits come back after the deadline."""
    async with running(books) as ledger:
        hold = held(await ledger.admit(make_asked()))
        with outage(books):
            ledger.release(hold, tries=1)
            await assert_unavailable(ledger.work(top_up))
        assert books.states() == ["held"]
    books.clock.now_ms += DAY_MS
    async with running(books) as ledger:
        await ledger.work(top_up)
    assert (books.states(), books.figures()) == (["swept"], (0, 12))
    books.assert_balanced()


@sqlite_only
async def test_on_a_full_disk_only_what_was_answered_is_in_the_books(books: Books) -> None:
    """Admissions go on as long as there is room, then say that they are unavailable; with room again, they go on."""
    async with running(books) as ledger:
        with full(books):
            answers = [await answer_to(ledger.admit(make_asked())) for _ in range(200)]
        holds = [held(answer) for answer in answers if isinstance(answer, Decision)]
        errors = [answer for answer in answers if not isinstance(answer, Decision)]
        assert holds
        assert str(errors[0]) == "The database failed: database or disk is full."
        assert {type(error) for error in errors} == {BooksUnavailableError}
        assert books.states() == ["held"] * len(holds)
        assert books.figures() == (len(holds), 5)
        assert books.account().window.taken == len(holds)
        books.assert_balanced()
        holds.append(held(await ledger.admit(make_asked())))
        assert [await charge(ledger, hold) for hold in holds] == [True] * len(holds)
    books.assert_balanced()


@sqlite_only
async def test_a_disk_that_fills_under_one_work_undoes_the_whole_batch(books: Books) -> None:
    """SQLite then rolls back everything: nobody in the batch may be told that what he asked for is done."""

    def stop(connection: Connection, _now_ms: int) -> None:
        write_intake(connection, Intake(stopped=True))

    async with running(books) as ledger:
        hold = held(await ledger.admit(make_asked()))
        before = books.dump()
        with full(books):
            async with paused(ledger):
                answers = asyncio.ensure_future(
                    assert_unavailable(
                        ledger.work(top_up),
                        ledger.admit(make_asked()),
                        ledger.work(fill),
                        charge(ledger, hold),
                        ledger.work(stop),
                        reason="database or disk is full",
                    )
                )
                await asyncio.sleep(0)
            await answers
        assert books.dump() == before
        await asyncio.gather(ledger.work(top_up), ledger.admit(make_asked()), charge(ledger, hold))
        await ledger.work(stop)
    assert (books.states(), books.figures()) == (["charged", "held"], (2, 12))
    assert books.rows("SELECT stopped FROM intake") == [(1,)]
    books.assert_balanced()


async def test_a_short_lock_is_waited_for(books: Books) -> None:
    """Another process's transaction delays, and refuses nobody."""
    books.pragmas["lock_timeout" if is_postgresql(books) else "busy_timeout"] = 20_000
    async with running(books) as ledger:
        with locked(books):
            waiting = asyncio.ensure_future(ledger.admit(make_asked()))
            _, pending = await asyncio.wait([waiting], timeout=0.1)
            assert pending
        held(await waiting)
    books.assert_balanced()
