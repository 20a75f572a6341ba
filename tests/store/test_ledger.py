"""The ledger: what is asked for is answered from the books, and every hold ends, whoever leaves."""

import asyncio
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

import pytest
from sqlalchemy import Connection, event, func, select
from sqlalchemy.exc import IntegrityError

from tarazu.domain.admission import Caller
from tarazu.domain.errors import Error, Refusal, Sender
from tarazu.store.availability import BooksUnavailableError
from tarazu.store.engine import KeptConnection, transaction
from tarazu.store.intake import read_intake
from tarazu.store.operations import SWEEP_MAX
from tarazu.store.prepared import Prepared, Values, read_together
from tests.support.books import Books, sqlite_only
from tests.support.ledgers import charge, paused, running, settled
from tests.support.patience import PATIENCE_S
from tests.support.values import (
    DAY_MS,
    NOON_MS,
    held,
    make_account,
    make_asked,
    make_catalogue,
    make_key,
    make_model,
    present,
    refused,
)

pytestmark = [pytest.mark.both_stores, pytest.mark.anyio]


@pytest.fixture
def books(books: Books) -> Books:
    """One account with two keys, on plan `basic`."""
    books.add(make_account(), make_key(1), make_key(2))
    return books


# The life of a hold.


async def test_an_admitted_request_is_charged(books: Books) -> None:
    """The happy path: hold, charge, usage."""
    async with running(books) as ledger:
        hold = held(await ledger.admit(make_asked(model="large")))
        assert books.states() == ["held"]
        assert await charge(ledger, hold) is True
    assert books.states() == ["charged"]
    assert books.rows("SELECT credits, prompt_tokens, completion_tokens FROM daily_usage") == [(5, 10, 20)]
    assert books.figures() == (5, 0)
    books.assert_balanced()


async def test_an_admitted_request_is_released(books: Books) -> None:
    """Nobody waits for it, and it is done; the tries are kept."""
    async with running(books) as ledger:
        hold = held(await ledger.admit(make_asked(model="large")))
        ledger.release(hold, tries=3)
        await settled(ledger)
        assert books.figures() == (0, 0)
    assert books.rows("SELECT state, tries FROM requests") == [("released", 3)]
    books.assert_balanced()


async def test_a_refusal_is_answered(books: Books) -> None:
    """With the place it took."""
    async with running(books) as ledger:
        decision = await ledger.admit(make_asked(model="unknown"))
    assert refused(decision).error is Error.MODEL_NOT_FOUND
    assert decision.rate_limit is not None
    assert (decision.rate_limit.remaining, books.account().window.taken) == (999, 1)


async def test_a_hold_ends_once_whatever_comes_second(books: Books) -> None:
    """A retried charge answers True, a charge after a release False; a release after a charge is nothing."""
    async with running(books) as ledger:
        hold, other = held(await ledger.admit(make_asked())), held(await ledger.admit(make_asked()))
        assert [await charge(ledger, hold), await charge(ledger, hold)] == [True, True]
        ledger.release(hold, tries=1)
        ledger.release(other, tries=1)
        assert await charge(ledger, other) is False
    assert books.states() == ["charged", "released"]
    assert books.figures() == (1, 0)
    books.assert_balanced()


async def test_a_charge_after_the_sweep_answers_false(books: Books) -> None:
    """A process died and its holds were swept by another: the late reply is not charged, and must not be sent."""
    async with running(books) as ledger:
        hold = held(await ledger.admit(make_asked()))
    books.clock.now_ms = hold.deadline_ms + 1
    async with running(books) as ledger:
        await settled(ledger)
        assert books.states() == ["swept"]
        assert await charge(ledger, hold) is False
    assert books.figures() == (0, 0)
    books.assert_balanced()


async def test_a_ledger_sweeps_as_soon_as_it_starts(books: Books) -> None:
    """Holds that a dead process left come back, those that are not overdue stay."""
    async with running(books) as ledger:
        overdue = held(await ledger.admit(make_asked(model="large")))
        books.clock.now_ms += 1
        held(await ledger.admit(make_asked()))
    books.clock.now_ms = overdue.deadline_ms + 1
    async with running(books) as ledger:
        await settled(ledger)
    assert books.states() == ["swept", "held"]
    assert books.figures() == (1, 0)


async def test_a_sweep_that_finds_many_goes_on_at_once(books: Books) -> None:
    """All holds that a dead process left come back without waiting for the next interval, in bounded batches."""
    async with running(books) as ledger:
        hold = held(await ledger.admit(make_asked(model="large")))
    books.multiply_holds(2 * SWEEP_MAX, later_ms="number")
    books.clock.now_ms = hold.deadline_ms + DAY_MS
    async with running(books) as ledger:
        for _ in range(4):
            await settled(ledger)
        assert books.states() == ["swept"] * (2 * SWEEP_MAX + 1)
    assert books.figures() == (0, 0)
    books.assert_balanced()


async def test_a_running_ledger_sweeps_by_itself(books: Books, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without being asked for anything, once in an interval."""
    monkeypatch.setattr("tarazu.store.ledger.SWEEP_INTERVAL_S", 0.02)
    async with running(books) as ledger:
        hold = held(await ledger.admit(make_asked()))
        books.clock.now_ms = hold.deadline_ms + 1
        async with asyncio.timeout(PATIENCE_S):
            while books.states() == ["held"]:  # noqa: ASYNC110 - nothing tells of a sweep but the books
                await asyncio.sleep(0.01)
    assert books.states() == ["swept"]


async def test_the_catalogue_can_be_replaced_while_it_runs(books: Books) -> None:
    """The next admission has the new price; what was admitted before keeps its own."""
    async with running(books) as ledger:
        before = held(await ledger.admit(make_asked()))
        ledger.catalogue = make_catalogue(models=[make_model("small", 7)])
        after = held(await ledger.admit(make_asked()))
        assert await charge(ledger, before)
        assert await charge(ledger, after)
    assert (before.credits, after.credits, books.figures()) == (1, 7, (8, 0))
    books.assert_balanced()


@sqlite_only
async def test_a_charge_is_on_disk_before_it_is_answered_and_a_hold_need_not_be(
    books: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a reply or a person relies on survives a power cut: charges and work. That saves one fsync of two."""
    monkeypatch.setattr("tarazu.store.ledger.SWEEP_INTERVAL_S", 3_600)
    commits: list[str] = []

    @event.listens_for(books.engine, "commit")
    def _note(connection: Connection) -> None:
        with closing(connection.connection.cursor()) as cursor:
            cursor.execute("PRAGMA synchronous")
            (level,) = cursor.fetchall()[0]
            commits.append({1: "NORMAL", 2: "FULL"}[level])

    async with running(books) as ledger:
        await settled(ledger)
        commits.clear()
        first, second = held(await ledger.admit(make_asked())), held(await ledger.admit(make_asked()))
        await charge(ledger, first)
        ledger.release(second, tries=1)
    async with running(books) as ledger:
        async with paused(ledger):
            both = asyncio.gather(ledger.admit(make_asked()), ledger.work(read_intake_retry_after_s))
        await both
    assert commits[:4] == ["NORMAL", "NORMAL", "FULL", "NORMAL"]
    assert commits[-1] == "FULL"
    books.assert_balanced()


@pytest.mark.parametrize("store_kind", ["postgresql"], indirect=True)
@pytest.mark.parametrize(("relaxed", "synchronous_commit"), [(True, "off"), (False, "on")])
async def test_postgresql_waits_for_its_disk_only_where_it_must(
    books: Books, *, relaxed: bool, synchronous_commit: str
) -> None:
    """One that may be undone by a power cut does not wait. Its first statements say so, for it alone."""
    settings: list[tuple[Prepared, Values]] = [(Prepared(select(func.current_setting("synchronous_commit"))), {})] * 2
    with transaction(books.engine, relaxed=relaxed) as connection:
        assert read_together(connection, settings) == [[(synchronous_commit,)]] * 2
    with transaction(books.engine) as connection:
        assert read_together(connection, settings) == [[("on",)]] * 2


@pytest.mark.parametrize("happened", [True, False])
async def test_an_admission_whose_commit_is_in_doubt_is_released(
    books: Books, monkeypatch: pytest.MonkeyPatch, *, happened: bool
) -> None:
    """Its caller is told that the books are unavailable; a hold that is there all the same ends before its deadline."""

    @contextmanager
    def cut(kept: KeptConnection, *, read_only: bool, relaxed: bool) -> Iterator[Connection]:
        monkeypatch.undo()
        with suppress(KeyError), kept.transaction(read_only=read_only, relaxed=relaxed) as connection:
            yield connection
            if not happened:
                raise KeyError
        raise BooksUnavailableError("The connection is lost.")

    async with running(books) as ledger:
        await settled(ledger)
        async with paused(ledger):
            asked = [make_asked(), make_asked(model="large"), make_asked(model="unknown")]
            answers = asyncio.gather(*map(ledger.admit, asked), return_exceptions=True)
            monkeypatch.setattr(KeptConnection, "transaction", cut)
        assert [type(answer) for answer in await answers] == [BooksUnavailableError] * 3
        await settled(ledger)
        assert books.states() == (["released"] * 2 if happened else [])
        assert books.figures() == (0, 0)
    books.assert_balanced()


# Who calls, and other work.


async def test_identify_answers_from_fresh_rows(books: Books) -> None:
    """With the caller, or why not; a change by another connection counts at once."""
    async with running(books) as ledger:
        assert await ledger.identify(present(1)) == Caller(make_key(1), make_account())
        assert await ledger.identify(present(3)) == Refusal(error=Error.INVALID_API_KEY)
        books.execute("UPDATE accounts SET status = 'inactive'")
        assert await ledger.identify(present(1)) == Refusal(
            error=Error.ACCOUNT_UNAVAILABLE, sender=Sender(make_account().id, make_key(1).id)
        )


async def test_work_answers_with_its_result_and_the_ledgers_time(books: Books) -> None:
    """It runs inside a transaction of the ledger, at the ledger's time."""
    async with running(books) as ledger:
        result = await ledger.work(lambda connection, now_ms: (read_intake(connection).retry_after_s, now_ms))
    assert result == (300, NOON_MS)


async def test_work_that_fails_is_answered_with_its_exception_and_leaves_the_others(books: Books) -> None:
    """In one batch: the others are answered as if it had not been there, and its own changes are gone."""

    def fail(connection: Connection, _now_ms: int) -> None:
        connection.exec_driver_sql("UPDATE intake SET retry_after_s = 99")
        connection.exec_driver_sql("UPDATE intake SET retry_after_s = 0")

    async with running(books) as ledger:
        async with paused(ledger):
            answers = asyncio.gather(
                ledger.admit(make_asked()),
                ledger.work(fail),
                ledger.admit(make_asked()),
                ledger.work(read_intake_retry_after_s),
                return_exceptions=True,
            )
        first, failure, second, retry_after_s = await answers
    assert isinstance(failure, IntegrityError)
    assert isinstance(first, BaseException) is isinstance(second, BaseException) is False
    assert retry_after_s == 300
    assert books.states() == ["held", "held"]
    books.assert_balanced()


async def test_work_that_raises_stop_iteration_strands_nobody(books: Books) -> None:
    """No future takes that exception; it is answered as another, and whoever shares the batch is answered too."""

    def fail(connection: Connection, _now_ms: int) -> Any:
        return next(name for (name,) in connection.exec_driver_sql("SELECT name FROM accounts WHERE id = 'none'"))

    async with running(books) as ledger:
        async with paused(ledger):
            answers = asyncio.gather(ledger.work(fail), ledger.admit(make_asked()), return_exceptions=True)
        async with asyncio.timeout(PATIENCE_S):
            failure, decision = await answers
    assert isinstance(failure, RuntimeError)
    assert isinstance(failure.__cause__, StopIteration)
    assert not isinstance(decision, BaseException)
    held(decision)


def read_intake_retry_after_s(connection: Connection, _now_ms: int) -> int:
    """Read one figure."""
    return read_intake(connection).retry_after_s


async def test_an_operation_that_breaks_its_batch_does_not_hurt_the_others(books: Books) -> None:
    """The same request id twice: the first is admitted, the second fails alone, the rest is done as asked."""
    asked = make_asked()
    async with running(books) as ledger:
        ended = held(await ledger.admit(make_asked()))
        async with paused(ledger):
            answers = asyncio.gather(
                ledger.admit(make_asked(2)),
                ledger.admit(asked),
                charge(ledger, ended),
                ledger.admit(asked),
                ledger.admit(make_asked(3)),
                ledger.identify(present(1)),
                return_exceptions=True,
            )
        other, first, charged, second, unknown, caller = await answers
        assert held(await ledger.admit(make_asked())).credits == 1
    assert not isinstance(other, BaseException)
    assert not isinstance(first, BaseException)
    assert not isinstance(unknown, BaseException)
    assert [held(other).key_id, held(first).request_id] == [make_key(2).id, asked.request_id]
    assert charged is True
    assert isinstance(second, IntegrityError)
    assert refused(unknown).error is Error.INVALID_API_KEY
    assert isinstance(caller, Caller)
    assert sorted(books.states()) == ["charged", "held", "held", "held"]
    assert books.figures() == (4, 0)
    books.assert_balanced()
