"""One batch, one transaction: every operation is answered in its place, and exact on the rows that others changed."""

import pytest
from sqlalchemy import Connection

from tarazu.domain.accounts import AccountStatus, Intake, Window
from tarazu.domain.admission import Caller
from tarazu.domain.credits import Hold, RequestState, Source
from tarazu.domain.errors import Error, Refusal
from tarazu.store.accounts import update_account
from tarazu.store.intake import write_intake
from tarazu.store.keys import revoke_key
from tarazu.store.operations import SWEEP_MAX, Admit, Identify, Operation, Sweep, Work
from tarazu.store.topups import insert_topup
from tests.support.books import Books, charge, make_topup, release
from tests.support.statements import seen
from tests.support.values import (
    DAY,
    DAY_MS,
    MINUTE_MS,
    NOON_MS,
    held,
    instant_ms,
    make_account,
    make_asked,
    make_catalogue,
    make_key,
    make_model,
    make_plan,
    present,
    refused,
)

pytestmark = pytest.mark.both_stores

MINUTE = NOON_MS // MINUTE_MS
USAGE = "SELECT day, key_id, model_id, requests, credits, prompt_tokens, completion_tokens FROM daily_usage"


@pytest.fixture
def books(books: Books) -> Books:
    """One account with two keys, on plan `basic`."""
    books.add(make_account(), make_key(1), make_key(2))
    return books


def test_an_admission_becomes_a_hold_in_the_books(books: Books) -> None:
    """One row in state `held`, the credits taken, a place used in both windows."""
    hold = held(books.admit(1, "large"))
    assert books.rows("SELECT id, account_id, key_id, model_id, credits, source, state, period, day FROM requests") == [
        (hold.request_id, "acc_1", make_key(1).id, "large", 5, "plan", "held", "2026-02", DAY)
    ]
    assert books.rows("SELECT created_at_ms, deadline_ms, ended_at_ms, tries, prompt_tokens FROM requests") == [
        (NOON_MS, NOON_MS + 90_000, None, None, None)
    ]
    assert books.account() == make_account(used=5, window=Window(MINUTE, 1))
    assert (books.key(1).window, books.key(2).window) == (Window(MINUTE, 1), Window())
    books.assert_balanced()


def test_a_charge_keeps_the_credits_and_counts_as_usage(books: Books) -> None:
    """With the figures of the reply, and when it ended."""
    hold = held(books.admit(1, "large"))
    books.clock.now_ms += 1_500
    assert books.run(charge(hold, tries=2, prompt_tokens=3, completion_tokens=4)) == [True]
    assert books.rows("SELECT state, ended_at_ms, tries, prompt_tokens, completion_tokens FROM requests") == [
        ("charged", NOON_MS + 1_500, 2, 3, 4)
    ]
    assert books.rows(USAGE) == [(DAY, make_key(1).id, "large", 1, 5, 3, 4)]
    assert books.figures() == (5, 0)
    books.assert_balanced()


@pytest.mark.parametrize(("plan", "source"), [("basic", Source.PLAN), (None, Source.BALANCE)])
def test_a_release_gives_the_credits_back_where_they_came_from(books: Books, plan: str | None, source: Source) -> None:
    """To the quota or to the balance; it is no usage."""
    books.add(make_account(id="acc_2", plan=plan), make_key(3, account_id="acc_2"), make_topup(9, account_id="acc_2"))
    hold = held(books.admit(3, "large"))
    assert hold.source is source
    assert books.figures("acc_2") == ((5, 9) if source is Source.PLAN else (0, 4))
    assert books.run(release(hold)) == [True]
    assert books.figures("acc_2") == (0, 9)
    assert (books.states(), books.rows(USAGE)) == (["released"], [])
    books.assert_balanced()


ENDINGS = ["charge", "release", "sweep"]


@pytest.mark.parametrize("second", ENDINGS)
@pytest.mark.parametrize("first", ENDINGS)
def test_a_hold_ends_once(books: Books, first: str, second: str) -> None:
    """Whichever ending comes second, in a later batch, it changes nothing, and only a charge after a charge is True."""
    hold = held(books.admit())
    books.clock.now_ms = hold.deadline_ms + 1
    endings: dict[str, Operation] = {"charge": charge(hold), "release": release(hold), "sweep": Sweep()}
    assert books.run(endings[first]) == [1 if first == "sweep" else True]
    before = books.dump()
    assert books.run(endings[second]) == [0 if second == "sweep" else first == second == "charge"]
    assert books.dump() == before
    assert books.states() == [{"charge": "charged", "release": "released", "sweep": "swept"}[first]]
    books.assert_balanced()


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_hold_ends_once_within_one_batch(books: Books, order: tuple[int, int]) -> None:
    """Of two endings that come together the first counts."""
    hold = held(books.admit())
    endings = (charge(hold), release(hold))
    assert books.run(*(endings[place] for place in order)) == [True, False]
    assert books.states() == [("charged", "released")[order[0]]]
    books.assert_balanced()


def test_a_charge_that_comes_twice_in_one_batch_is_charged_once(books: Books) -> None:
    """Both are answered True; the daily usage counts one."""
    hold = held(books.admit())
    assert books.run(charge(hold), charge(hold)) == [True, True]
    assert (books.states(), books.figures()) == (["charged"], (1, 0))
    books.assert_balanced()


def test_of_a_sweep_and_a_late_charge_in_one_batch_the_sweep_counts(books: Books) -> None:
    """The deadline has passed: the reply must not go out."""
    hold = held(books.admit())
    books.clock.now_ms = hold.deadline_ms + 1
    assert books.run(charge(hold), Sweep()) == [False, 1]
    assert (books.states(), books.figures()) == (["swept"], (0, 0))
    books.assert_balanced()


def test_the_sweep_comes_after_the_deadline_and_not_before(books: Books) -> None:
    """Up to and at the deadline a hold can still be charged."""
    hold = held(books.admit())
    for now_ms in (hold.deadline_ms - 1, hold.deadline_ms):
        books.clock.now_ms = now_ms
        assert books.run(Sweep()) == [0]
    assert books.states() == ["held"]
    books.clock.now_ms = hold.deadline_ms + 1
    assert books.run(Sweep()) == [1]
    assert books.states() == ["swept"]
    assert books.figures() == (0, 0)


def test_a_sweep_is_bounded_and_the_next_takes_the_rest(books: Books) -> None:
    """The oldest deadlines first."""
    books.run(*(Admit(make_asked()) for _ in range(100)))
    books.multiply_holds(5, later_ms="1")
    books.clock.now_ms += DAY_MS
    assert books.figures() == (100, 0)
    assert books.run(Sweep()) == [SWEEP_MAX]
    assert books.figures() == (0, 0)
    assert books.run(Sweep()) == [600 - SWEEP_MAX]
    assert books.run(Sweep()) == [0]


def test_a_hold_of_last_month_leaves_the_new_quota_alone(books: Books) -> None:
    """Released or charged after the month has turned, it belongs to its own month and day."""
    books.clock.now_ms = instant_ms("2026-02-28T23:59:59.999")
    released, charged = held(books.admit(1, "large")), held(books.admit(1, "large"))
    books.clock.now_ms += 1
    assert held(books.admit(1, "small")).period == "2026-03"
    assert books.run(release(released), charge(charged)) == [True, True]
    assert books.figures() == (1, 0)
    assert [row[0] for row in books.rows(USAGE)] == ["2026-02-28"]
    books.assert_balanced()


def test_the_same_account_many_times_in_one_batch_is_exact(books: Books) -> None:
    """Each admission sees what the ones before it have taken: 100 credits, 30 of 5 asked for, 20 granted."""
    answers = books.run(*(Admit(make_asked(1 + number % 2, "large")) for number in range(30)))
    outcomes = [answer.outcome for answer in answers]
    assert [isinstance(outcome, Hold) for outcome in outcomes] == [True] * 20 + [False] * 10
    assert {outcome.error for outcome in outcomes[20:]} == {Error.API_CREDITS_EXHAUSTED}
    assert outcomes[20].details.used == 100
    assert books.account() == make_account(used=100, window=Window(MINUTE, 30))
    assert (books.key(1).window.taken, books.key(2).window.taken) == (15, 15)
    books.assert_balanced()


def test_the_last_credits_of_the_quota_and_then_the_balance_pay(books: Books) -> None:
    """Within one batch too: each request from one source."""
    books.add(make_topup(6))
    books.catalogue = make_catalogue(plans=[make_plan(monthly_credits=12)])
    answers = books.run(*(Admit(make_asked(model=model)) for model in ("large", "large", "large", "small", "small")))
    assert [held(answer).source for answer in answers] == [
        Source.PLAN,
        Source.PLAN,
        Source.BALANCE,
        Source.PLAN,
        Source.PLAN,
    ]
    assert books.figures() == (12, 1)
    books.assert_balanced()


def test_many_charges_of_one_day_add_up(books: Books) -> None:
    """By key and model, in one batch and over several."""
    asked = [(1, "small"), (1, "small"), (2, "small"), (1, "large")]
    for _ in range(2):
        holds = [held(answer) for answer in books.run(*(Admit(make_asked(*each)) for each in asked))]
        assert books.run(*(charge(hold) for hold in holds)) == [True] * 4
    assert sorted(books.rows(USAGE)) == sorted(
        [
            (DAY, make_key(1).id, "small", 4, 4, 40, 80),
            (DAY, make_key(2).id, "small", 2, 2, 20, 40),
            (DAY, make_key(1).id, "large", 2, 10, 20, 40),
        ]
    )
    books.assert_balanced()


def test_credits_that_come_back_serve_the_admissions_of_the_same_batch(books: Books) -> None:
    """A release, a sweep or a top-up is in force for those who wait with it."""
    books.catalogue = make_catalogue(plans=[make_plan(monthly_credits=5)])
    hold = held(books.admit(1, "large"))
    answers = books.run(Admit(make_asked(model="large")), release(hold))
    assert (held(answers[0]).source, answers[1]) == (Source.PLAN, True)
    topup = make_topup(5)
    answers = books.run(
        Admit(make_asked(model="large")), Work(lambda connection, _now_ms: insert_topup(connection, topup))
    )
    assert held(answers[0]).source is Source.BALANCE
    books.clock.now_ms += DAY_MS
    assert held(books.run(Admit(make_asked(model="large")), Sweep())[0]).source is Source.PLAN
    books.assert_balanced()


def test_what_work_changes_holds_for_the_admissions_of_the_same_batch(books: Books) -> None:
    """A revocation, a block or a stop is in force for those who wait with it."""

    def stop(connection: Connection, _now_ms: int) -> None:
        write_intake(connection, Intake(stopped=True, retry_after_s=7))

    def revoke(connection: Connection, now_ms: int) -> None:
        revoke_key(connection, make_key(1).id, now_ms)

    def block(connection: Connection, _now_ms: int) -> None:
        update_account(connection, "acc_1", plan="basic", status=AccountStatus.BLOCKED)

    def errors(*changes: Work) -> list[Error]:
        answers = books.run(Admit(make_asked(1)), Admit(make_asked(2)), *changes)
        return [refused(answer).error for answer in answers[:2]]

    assert errors(Work(stop)) == [Error.SYSTEM_STOPPED, Error.SYSTEM_STOPPED]
    assert errors(Work(revoke)) == [Error.INVALID_API_KEY, Error.SYSTEM_STOPPED]
    assert errors(Work(block)) == [Error.INVALID_API_KEY, Error.ACCOUNT_UNAVAILABLE]
    assert books.states() == []


def test_work_that_fails_undoes_only_its_own_changes(books: Books) -> None:
    """Its exception is its answer; what stood before it and beside it in the batch stays."""
    failure = KeyError("mine")

    def fail(connection: Connection, _now_ms: int) -> None:
        write_intake(connection, Intake(stopped=True))
        raise failure

    def rename(connection: Connection, now_ms: int) -> int:
        connection.exec_driver_sql("UPDATE accounts SET name = 'Renamed'")
        return now_ms

    answers = books.run(Work(rename), Work(fail), Admit(make_asked()), Work(rename))
    assert (answers[0], answers[1], answers[3]) == (NOON_MS, failure, NOON_MS)
    held(answers[2])
    assert books.account().name == "Renamed"
    assert books.rows("SELECT stopped FROM intake") == [(0,)]
    books.assert_balanced()


def test_the_windows_count_across_batches_and_turn_with_the_minute(books: Books) -> None:
    """A limit of 3: three in the minute, however they are batched, and three in the next."""
    books.catalogue = make_catalogue(plans=[make_plan(requests_per_minute=3)])

    def admitted(count: int) -> int:
        return sum(
            isinstance(answer.outcome, Hold) for answer in books.run(*(Admit(make_asked()) for _ in range(count)))
        )

    assert [admitted(2), admitted(2), admitted(1)] == [2, 1, 0]
    books.clock.now_ms += MINUTE_MS - 1
    assert admitted(5) == 0
    books.clock.now_ms += 1
    assert admitted(5) == 3
    books.clock.now_ms -= MINUTE_MS
    assert admitted(5) == 0
    assert books.account().window == Window(MINUTE + 1, 3)


def test_a_refusal_after_row_7_is_stored_as_a_place_only(books: Books) -> None:
    """No request row, no credits; refusals before it leave no trace at all."""
    books.run(Admit(make_asked(refusal=Refusal(error=Error.MESSAGES_REQUIRED))), Admit(make_asked(model="unknown")))
    assert books.account() == make_account(window=Window(MINUTE, 2))
    assert books.key(1) == make_key(1, window=Window(MINUTE, 2))
    before = books.dump()
    assert before["requests"] == []
    assert refused(books.run(Admit(make_asked(3)))[0]).error is Error.INVALID_API_KEY
    books.execute("UPDATE intake SET stopped = 1")
    assert refused(books.admit()).error is Error.SYSTEM_STOPPED
    assert {**books.dump(), "intake": before["intake"]} == before


def test_identify_changes_nothing(books: Books) -> None:
    """Reading who calls takes no place, whatever the answer."""
    before = books.dump()
    answers = books.run(Identify(present(1)), Identify(present(3)))
    assert answers == [Caller(make_key(1), make_account()), Refusal(error=Error.INVALID_API_KEY)]
    assert books.dump() == before


def test_the_number_of_statements_does_not_grow_with_the_batch(books: Books) -> None:
    """Group commit pays since a batch of 200 admissions and 200 charges takes as many statements as one of each."""
    books.catalogue = make_catalogue(plans=[make_plan(monthly_credits=10**6, requests_per_minute=10**6)])
    counts = []
    for size in (1, 200):
        holds = [held(answer) for answer in books.run(*(Admit(make_asked()) for _ in range(size)))]
        with seen(books.engine) as statements:
            books.run(*(Admit(make_asked()) for _ in range(size)), *(charge(hold) for hold in holds))
        counts.append(len(statements))
    assert 8 <= counts[0] == counts[1] <= 12


def test_an_empty_batch_is_nothing(books: Books) -> None:
    """No answers, no change."""
    before = books.dump()
    assert books.run() == []
    assert books.dump() == before


def test_a_plan_or_model_that_is_gone_does_not_keep_a_hold_from_ending(books: Books) -> None:
    """The hold says all that its end needs: the catalogue may have changed meanwhile."""
    charged, released = held(books.admit(1, "large")), held(books.admit(1, "large"))
    books.catalogue = make_catalogue(models=[make_model("other")], plans=[])
    assert books.run(charge(charged), release(released)) == [True, True]
    assert books.figures() == (5, 0)
    books.assert_balanced()


def test_states_are_those_of_the_domain(books: Books) -> None:
    """The database's list of states and the code's are one."""
    hold = held(books.admit())
    for state in RequestState:
        books.execute(
            "UPDATE requests SET state = :state, ended_at_ms = :ended",
            state=state.value,
            ended=None if state is RequestState.HELD else hold.deadline_ms,
        )
