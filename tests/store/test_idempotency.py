"""Idempotency keys in the books: one request holds a key, its charge stores the reply, any other end frees the key."""

import asyncio

import pytest
from sqlalchemy import Connection

from tarazu.domain.admission import Decision
from tarazu.domain.credits import Hold
from tarazu.domain.errors import Error
from tarazu.domain.idempotency import KEPT_MS, Replay, idempotency_of
from tarazu.store.audit import Difference
from tarazu.store.operations import KEYS_SWEEP_MAX, Admit, End, Later, Sweep, Work
from tests.support.books import Books, charge, release
from tests.support.ledgers import Pause, paused, running, settled
from tests.support.statements import seen
from tests.support.values import (
    NOON_MS,
    PERIOD,
    held,
    make_account,
    make_asked,
    make_catalogue,
    make_key,
    make_plan,
    refused,
)

pytestmark = pytest.mark.both_stores

BODY = b'{"prompt": "Hello"}'
KEPT = "SELECT account_id, key, request_id, period, created_at_ms, reply FROM idempotency_keys ORDER BY 1, 2"


@pytest.fixture
def books(books: Books) -> Books:
    """One account with keys 1 and 2, another with key 3; both on a plan that lets a test ask often."""
    books.catalogue = make_catalogue(plans=[make_plan(monthly_credits=10**6, requests_per_minute=10**6)])
    books.add(make_account(), make_key(1), make_key(2))
    books.add(make_account(id="acc_2"), make_key(3, account_id="acc_2"))
    return books


def asking(key: str = "a key", number: int = 1, body: bytes = BODY) -> Admit:
    """Make an admission with an idempotency key."""
    return Admit(make_asked(number, idempotency=idempotency_of(key, body)))


def ask(books: Books, key: str = "a key", number: int = 1, body: bytes = BODY) -> Decision:
    """Run a batch of one admission with an idempotency key."""
    decision: Decision = books.run(asking(key, number, body))[0]
    return decision


def answer(hold: Hold, reply: bytes = b"Hello.") -> End:
    """Make the operation that charges a hold and stores its reply."""
    return charge(hold, reply=reply)


def test_a_key_is_taken_with_the_hold_and_gets_the_reply_with_the_charge(books: Books) -> None:
    """One row, which names its request."""
    hold = held(ask(books))
    row = ("acc_1", "a key", hold.request_id, PERIOD, NOON_MS)
    assert books.rows(KEPT) == [(*row, None)]
    books.assert_balanced()
    assert books.run(answer(hold)) == [True]
    assert books.rows(KEPT) == [(*row, b"Hello.")]
    books.assert_balanced()


def test_a_replay_moves_nothing_but_the_windows(books: Books) -> None:
    """Also by another key of the account."""
    hold = held(ask(books))
    assert refused(ask(books, number=2)).error is Error.IDEMPOTENCY_CONFLICT
    books.run(answer(hold))
    for number in (1, 2):
        assert ask(books, number=number).outcome == Replay(b"Hello.")
    assert refused(ask(books, body=b"{}")).error is Error.IDEMPOTENCY_MISMATCH
    assert (books.states(), books.figures()) == (["charged"], (1, 0))
    assert (books.account().window.taken, books.key(2).window.taken) == (5, 2)
    books.assert_balanced()


def test_the_same_key_many_times_in_one_batch_is_held_once(books: Books) -> None:
    """The first takes it, whoever asks for the account; another account has its own."""
    first, *others = books.run(*(asking(number=1 + place % 3) for place in range(30)))
    theirs = others[1]
    assert held(theirs).account_id == "acc_2"
    assert held(first).account_id == "acc_1"
    errors = [refused(each).error for each in others if each is not theirs]
    assert errors == [Error.IDEMPOTENCY_CONFLICT] * 28
    assert len(books.rows(KEPT)) == 2
    books.assert_balanced()


def test_another_body_in_the_same_batch_is_refused(books: Books) -> None:
    """As it would be in the next."""
    first, second = books.run(asking(), asking(body=b"{}"))
    held(first)
    assert refused(second).error is Error.IDEMPOTENCY_MISMATCH


def test_a_reply_of_the_same_batch_is_replayed(books: Books) -> None:
    """Ends come first in a batch: what is charged in it is answered in it, on disk together."""
    hold = held(ask(books))
    replay, charged, other = books.run(asking(), answer(hold), asking(body=b"{}"))
    assert (replay.outcome, charged) == (Replay(b"Hello."), True)
    assert refused(other).error is Error.IDEMPOTENCY_MISMATCH


def test_a_release_frees_the_key(books: Books) -> None:
    """In its own batch already; the next first request may have another body."""
    first = held(ask(books))
    assert books.run(release(first)) == [True]
    assert books.rows(KEPT) == []
    second = held(ask(books, body=b"{}"))
    released, third, fourth = books.run(release(second), asking(), asking())
    assert released is True
    assert refused(fourth).error is Error.IDEMPOTENCY_CONFLICT
    assert [row[2] for row in books.rows(KEPT)] == [held(third).request_id]
    assert books.figures() == (1, 0)
    books.assert_balanced()


def test_a_sweep_frees_the_key_and_a_late_charge_takes_nothing_from_who_has_it_now(books: Books) -> None:
    """The swept request's reply is not stored, neither over a new request nor over its reply."""
    swept = held(ask(books))
    books.clock.now_ms = swept.deadline_ms + 1
    assert books.run(Sweep()) == [1]
    assert books.rows(KEPT) == []
    books.assert_balanced()
    assert books.run(answer(swept, b"Late.")) == [False]
    assert books.rows(KEPT) == []
    hold = held(ask(books))
    assert books.run(answer(swept, b"Late."), release(swept)) == [False, False]
    assert refused(ask(books)).error is Error.IDEMPOTENCY_CONFLICT
    books.run(answer(hold))
    assert books.run(answer(swept, b"Late."), release(swept), release(hold)) == [False, False, False]
    assert ask(books).outcome == Replay(b"Hello.")
    books.assert_balanced()


def test_a_late_charge_in_the_batch_of_its_sweep_and_of_the_retry(books: Books) -> None:
    """The sweep counts, the key is free, and the retry has it."""
    late = held(ask(books))
    books.clock.now_ms = late.deadline_ms + 1
    charged, swept, retry = books.run(answer(late, b"Late."), Sweep(), asking(body=b"{}"))
    assert (charged, swept) == (False, 1)
    assert [row[2] for row in books.rows(KEPT)] == [held(retry).request_id]
    books.assert_balanced()


def test_a_key_is_kept_for_24_hours(books: Books) -> None:
    """The millisecond after, it is as good as new, whether the sweep has come or not."""
    first = held(ask(books))
    books.run(answer(first))
    books.clock.now_ms = NOON_MS + KEPT_MS - 1
    assert ask(books).outcome == Replay(b"Hello.")
    books.clock.now_ms = NOON_MS + KEPT_MS
    second, running_ = books.run(asking(body=b"{}"), asking(body=b"{}"))
    assert refused(running_).error is Error.IDEMPOTENCY_CONFLICT
    assert [(row[2], row[5]) for row in books.rows(KEPT)] == [(held(second).request_id, None)]
    books.run(answer(held(second), b"Second."))
    assert ask(books, body=b"{}").outcome == Replay(b"Second.")
    assert books.figures() == (2, 0)
    books.assert_balanced()


def test_the_sweep_forgets_what_was_kept_for_24_hours(books: Books) -> None:
    """And nothing younger."""
    books.run(answer(held(ask(books, "old"))))
    books.clock.now_ms += 1
    books.run(answer(held(ask(books, "young"))))
    books.clock.now_ms = NOON_MS + KEPT_MS - 1
    books.run(Sweep())
    assert [row[1] for row in books.rows(KEPT)] == ["old", "young"]
    books.clock.now_ms += 1
    assert books.run(Sweep()) == [0]
    assert [row[1] for row in books.rows(KEPT)] == ["young"]
    assert ask(books, "young").outcome == Replay(b"Hello.")


def test_the_forgetting_is_bounded(books: Books) -> None:
    """The oldest first, and the rest by the next sweep."""
    books.execute(
        "WITH RECURSIVE numbers(number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < :rows)"
        " INSERT INTO idempotency_keys (account_id, key, fingerprint, request_id, period, created_at_ms)"
        " SELECT 'acc_1', 'key ' || CAST(number AS VARCHAR), :fingerprint, CAST(number AS VARCHAR), '2026-02', number"
        " FROM numbers",
        rows=KEYS_SWEEP_MAX + 5,
        fingerprint=b"x" * 32,
    )
    books.run(Sweep())
    assert books.rows("SELECT min(created_at_ms), count(*) FROM idempotency_keys") == [(KEYS_SWEEP_MAX + 1, 5)]
    books.run(Sweep())
    assert books.rows(KEPT) == []


def test_keys_cost_statements_only_where_they_are_sent(books: Books) -> None:
    """None in a batch without keys, and as many for 200 of them as for one."""
    with seen(books.engine) as statements:
        plain = held(books.admit())
        books.run(charge(plain), release(held(books.admit())), Admit(make_asked()))
    assert statements
    assert _of_keys(statements) == []
    counts = []
    for size in (1, 200):
        first = [held(each) for each in books.run(*(asking(f"first {size} {number}") for number in range(size)))]
        second = [held(each) for each in books.run(*(asking(f"second {size} {number}") for number in range(size)))]
        asked = [asking(f"third {size} {number}") for number in range(size)]
        with seen(books.engine) as statements:
            books.run(*map(answer, first), *map(release, second), *asked)
        counts.append(len(_of_keys(statements)))
    assert counts == [5, 5]


def _of_keys(statements: list[str]) -> list[str]:
    return [statement for statement in statements if "idempotency_keys" in statement]


@pytest.fixture
def replies(books: Books, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Keep five replies of 10 bytes, and one of 40 for the third key; a batch has room for 25 bytes."""
    monkeypatch.setattr("tarazu.store.idempotency.REPLIES_BYTES_MAX", 25)
    replies = [b"%010d" % number * (4 if number == 2 else 1) for number in range(6)]
    holds = [held(each) for each in books.run(*(asking(f"key {number}") for number in range(6)))]
    books.run(*map(answer, holds, replies))
    return replies


def test_one_batch_reads_no_more_replies_than_it_has_room_for(books: Books, replies: list[bytes]) -> None:
    """Who asked first is answered; the others are asked to come again, and nothing is done for them."""
    order = [5, 0, 2, 5, 1, 0]
    answers = books.run(*(asking(f"key {number}") for number in order), asking("new"), Admit(make_asked()))
    assert answers[2] == answers[4] == Later()
    assert [answers[place].outcome.reply for place in (0, 1, 3, 5)] == [replies[order[place]] for place in (0, 1, 3, 5)]
    assert [held(each).account_id for each in answers[6:]] == ["acc_1"] * 2
    assert books.account().window.taken == 6 + 6
    books.assert_balanced()


def test_a_reply_that_is_larger_than_the_room_is_read_alone(books: Books, replies: list[bytes]) -> None:
    """Else nobody would ever get it."""
    answers = books.run(asking("key 2"), asking("key 1"))
    assert (answers[0].outcome, answers[1]) == (Replay(replies[2]), Later())


def test_a_batch_that_fails_leaves_no_key(books: Books) -> None:
    """The key, the hold and the reply are of one transaction."""
    hold = held(ask(books))
    before = books.dump()

    def fail(connection: Connection, _now_ms: int) -> None:
        connection.exec_driver_sql("SELECT 1")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        books.run(asking("other"), answer(hold), Work(fail))
    assert books.dump() == before


def test_the_audit_names_keys_that_belong_to_no_such_request(books: Books) -> None:
    """A reply without its charge, a key without its hold, a key without any request."""
    charged, held_, lost = (held(ask(books, key)) for key in ("charged", "held", "lost"))
    books.run(answer(charged))
    books.assert_balanced()
    for hold, reply in ((charged, None), (held_, b"Free."), (lost, None)):
        books.execute(
            "UPDATE idempotency_keys SET reply = :reply, reply_bytes = NULL WHERE request_id = :id",
            reply=reply,
            id=hold.request_id,
        )
    books.execute("UPDATE idempotency_keys SET request_id = 'req_none' WHERE request_id = :id", id=lost.request_id)
    without, with_ = "idempotency key without a reply: held requests", "idempotency key with a reply: charged requests"
    assert books.audit().differences == tuple(
        Difference(account_id="acc_1", figure=figure, subject=subject, booked=1, computed=0)
        for figure, subject in ((without, charged.request_id), (with_, held_.request_id), (without, "req_none"))
    )


def test_the_audit_names_a_reply_of_another_length_than_is_counted(books: Books) -> None:
    """A reply that is gone without a word, and one that takes more room than it is said to."""
    first, second = (held(ask(books, key)) for key in ("first", "second"))
    books.run(answer(first), answer(second, b"Hello again."))
    books.execute("UPDATE idempotency_keys SET reply_bytes = 7 WHERE request_id = :id", id=first.request_id)
    books.execute("UPDATE idempotency_keys SET reply_bytes = 0 WHERE request_id = :id", id=second.request_id)
    assert books.audit().differences == (
        Difference(
            account_id="acc_1", figure="bytes of a reply", subject=first.request_id, booked=7, computed=len(b"Hello.")
        ),
        Difference(account_id="acc_1", figure="bytes of a reply", subject=second.request_id, booked=0, computed=12),
    )


def test_the_audit_names_a_key_of_another_account_than_its_request(books: Books) -> None:
    """One account's reply would be another's."""
    hold = held(ask(books, "mine"))
    books.add(make_account(id="acc_9"))
    books.execute("UPDATE idempotency_keys SET account_id = 'acc_9'")
    assert books.audit().differences == (
        Difference(
            account_id="acc_9",
            figure="idempotency key without a reply: held requests",
            subject=hold.request_id,
            booked=1,
            computed=0,
        ),
    )


# By the ledger.


@pytest.mark.anyio
async def test_two_processes_share_the_keys(books: Books) -> None:
    """Of forty that ask two ledgers at once with one key, one is held."""
    other = books.open_engine({})
    async with running(books) as first, running(books, other) as second:
        ledgers = (first, second)
        decisions = await asyncio.gather(*(ledgers[place % 2].admit(asking().asked) for place in range(40)))
        holds = [each.outcome for each in decisions if isinstance(each.outcome, Hold)]
        assert len(holds) == 1
        assert await second.charge(holds[0], tries=1, prompt_tokens=1, completion_tokens=1, reply=b"Hello.")
        assert (await first.admit(asking().asked)).outcome == Replay(b"Hello.")
    other.dispose()
    books.assert_balanced()


@pytest.mark.anyio
async def test_replays_that_one_batch_has_no_room_for_are_answered_by_the_next(
    books: Books, replies: list[bytes]
) -> None:
    """All that ask at once are answered, in some batches more, also while the ledger stops."""
    async with running(books) as ledger:
        async with paused(ledger):
            asked = asyncio.gather(*(ledger.admit(asking(f"key {number}").asked) for number in range(6)))
            await asyncio.sleep(0)
            stopping = asyncio.ensure_future(ledger.stop())
        await stopping
        assert [decision.outcome for decision in await asked] == [Replay(reply) for reply in replies]
    assert books.account().window.taken == 6 + 6
    books.assert_balanced()


@pytest.mark.anyio
async def test_a_caller_that_leaves_frees_its_key(books: Books) -> None:
    """Its hold is made while it leaves, and released, and the key with it."""
    async with running(books) as ledger:
        pause = Pause()
        async with paused(ledger):
            pausing = asyncio.ensure_future(ledger.work(pause))
            leaving = asyncio.ensure_future(ledger.admit(asking().asked))
        await pause.begun()
        leaving.cancel()
        await asyncio.wait([leaving])
        pause.go_on.set()
        await pausing
        await settled(ledger)
        assert books.states() == ["released"]
        assert books.rows(KEPT) == []
        hold = held(await ledger.admit(asking().asked))
        ledger.release(hold, tries=1)
        await settled(ledger)
        assert books.rows(KEPT) == []
    books.assert_balanced()
