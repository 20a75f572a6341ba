"""A pool asks the right backend, another when that fails, and nobody in vain; all in virtual time."""

import asyncio
from collections import Counter
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.backends.health import FAILURES_MAX, REST_MIN_S
from tarazu.backends.members import Place
from tarazu.backends.pool import AGAIN_TRIES_MAX, TRIES_MAX, WAIT_SHARE_MAX, Pool, PoolError
from tarazu.backends.port import Fault, Remedy
from tests.support.pools import REQUEST, TIMEOUT_S, PlannedBackend, ask_at_once, ask_times, busy, make_pool, now_s
from tests.support.virtual_time import run_in_virtual_time

LATER = Place(priority=1)
ELSEWHERE = [fault for fault in Fault if fault.remedy is Remedy.ELSEWHERE]
GIVE_UP = [fault for fault in Fault if fault.remedy is Remedy.GIVE_UP]
REFUSED_AT_ONCE = Fault.KEY_REFUSED
"""A fault after which the same backend is not asked again for the same request."""


# Who is asked


def test_the_first_priority_serves_alone_while_it_is_well() -> None:
    """A second choice is for when the first fails."""
    first, second = PlannedBackend("first"), PlannedBackend("second")
    assert run_in_virtual_time(ask_times(make_pool((second, LATER), first), 20)) == ["first"] * 20


@pytest.mark.parametrize("fault", ELSEWHERE)
def test_the_second_choice_serves_when_the_first_fails(fault: Fault) -> None:
    """The caller gets its reply, of the second try."""
    first, second = PlannedBackend("first", fault), PlannedBackend("second")

    async def scenario() -> tuple[str, int]:
        answer = await make_pool(first, (second, LATER)).ask(REQUEST)
        return answer.reply.text, answer.tries

    assert run_in_virtual_time(scenario()) == ("second", 2)


@pytest.mark.parametrize("fault", GIVE_UP)
def test_a_request_that_is_refused_is_not_asked_elsewhere(fault: Fault) -> None:
    """What one server does not take for its content, the others need not be bothered with."""
    first, second = PlannedBackend("first", fault), PlannedBackend("second")

    async def scenario() -> int:
        with pytest.raises(PoolError) as caught:
            await make_pool(first, (second, LATER)).ask(REQUEST)
        return caught.value.tries

    assert run_in_virtual_time(scenario()) == 1
    assert second.asked_at_s == []


@pytest.mark.parametrize("weights", [(1, 1), (3, 1), (5, 2, 1)])
def test_requests_one_after_the_other_are_shared_by_weight(weights: tuple[int, ...]) -> None:
    """Exactly, over any round of as many requests as the weights add up to."""
    backends = [(PlannedBackend(str(number)), Place(weight=weight)) for number, weight in enumerate(weights)]
    names = run_in_virtual_time(ask_times(make_pool(*backends), sum(weights) * 5))
    for begin in range(0, len(names), sum(weights)):
        shares = Counter(names[begin : begin + sum(weights)])
        assert sorted(shares.values()) == sorted(weights)


def test_requests_at_once_go_where_the_load_is_least() -> None:
    """A backend that is slow gets less of them than its weight would give it."""
    quick, slow = PlannedBackend("quick"), PlannedBackend("slow", takes_s=30.0)

    async def scenario() -> None:
        pool = make_pool(quick, slow)
        await asyncio.gather(*(ask_times(pool, 25) for _ in range(4)))

    run_in_virtual_time(scenario())
    assert len(slow.asked_at_s) < len(quick.asked_at_s) / 4
    assert slow.in_flight_max <= 2


def test_who_comes_back_from_a_rest_gets_its_share_and_no_more() -> None:
    """Turns are not saved up: load returns to it, but not all of it."""
    back, other = PlannedBackend("back", *[REFUSED_AT_ONCE] * FAILURES_MAX, None), PlannedBackend("other")

    async def scenario() -> list[str]:
        pool = make_pool(back, other)
        await ask_times(pool, 200)
        return await ask_times(pool, 20)

    assert Counter(run_in_virtual_time(scenario())) == {"back": 10, "other": 10}


# How often, and how long


@pytest.mark.parametrize("fault", [Fault.UNREACHABLE, Fault.STATUS])
def test_a_backend_alone_is_asked_again_after_a_pause(fault: Fault) -> None:
    """What is over in a moment is not the caller's loss."""
    alone = PlannedBackend("alone", fault, None, takes_s=0.0)

    async def scenario() -> tuple[str, int]:
        answer = await make_pool(alone).ask(REQUEST)
        return answer.reply.text, answer.tries

    assert run_in_virtual_time(scenario()) == ("alone", 2)
    first_s, second_s = alone.asked_at_s
    assert second_s - first_s == pytest.approx(0.1)


def test_the_pauses_grow_and_differ_by_chance() -> None:
    """Many callers that failed together do not come back together."""
    alone = PlannedBackend("alone", Fault.STATUS, Fault.STATUS, None, takes_s=0.0)
    run_in_virtual_time(ask_times(make_pool(alone, jitter=1.0), 1))
    first_s, second_s, third_s = alone.asked_at_s
    assert [second_s - first_s, third_s - second_s] == pytest.approx([0.15, 0.3])


@pytest.mark.parametrize("fault", [Fault.KEY_REFUSED, Fault.INVALID_REPLY])
def test_a_fault_that_will_last_is_not_tried_again(fault: Fault) -> None:
    """The same server would answer the same."""
    alone = PlannedBackend("alone", fault)
    [outcome] = run_in_virtual_time(ask_at_once(make_pool(alone), 1))
    assert isinstance(outcome, PoolError)
    assert outcome.tries == 1


@pytest.mark.parametrize(("backends", "tries"), [(1, AGAIN_TRIES_MAX), (2, AGAIN_TRIES_MAX), (5, 5), (20, TRIES_MAX)])
def test_the_tries_for_one_request_are_limited(backends: int, tries: int) -> None:
    """Each backend once, where there are few some of them again, and never more than a bound."""
    planned = [PlannedBackend(str(number), Fault.STATUS, takes_s=0.0) for number in range(backends)]
    [outcome] = run_in_virtual_time(ask_at_once(make_pool(*planned), 1))
    assert isinstance(outcome, PoolError)
    assert outcome.tries == sum(len(backend.asked_at_s) for backend in planned) == tries


def test_all_tries_share_one_deadline() -> None:
    """A second try has what the first has left of the model's time-out."""
    slow, other = PlannedBackend("slow", Fault.STATUS, takes_s=50.0), PlannedBackend("other", takes_s=50.0)

    async def scenario() -> float:
        with pytest.raises(PoolError):
            await make_pool(slow, (other, LATER)).ask(REQUEST)
        return now_s()

    assert run_in_virtual_time(scenario()) == TIMEOUT_S
    assert (slow.given_s, other.given_s) == ([60.0], [10.0])


def test_a_backends_own_time_out_leaves_time_for_another() -> None:
    """One that stalls need not use up the whole deadline."""
    stalled, other = PlannedBackend("stalled", takes_s=1_000.0), PlannedBackend("other")
    pool = make_pool((stalled, Place(timeout_s=15.0)), (other, LATER))
    assert run_in_virtual_time(ask_times(pool, 1)) == ["other"]
    assert (stalled.given_s, other.given_s) == ([15.0], [45.0])


def test_running_out_of_a_time_that_was_short_is_not_the_backends_fault() -> None:
    """A last try with what others have left over says nothing about the one that was asked."""
    slow, other = PlannedBackend("slow", REFUSED_AT_ONCE, takes_s=50.0), PlannedBackend("other", takes_s=20.0)

    async def scenario() -> list[str]:
        pool = make_pool(slow, (other, LATER))
        await ask_at_once(pool, 2 * FAILURES_MAX)
        assert other.given_s == [10.0] * 2 * FAILURES_MAX
        slow.takes_s = 0.0
        return await ask_times(pool, 1)

    assert run_in_virtual_time(scenario()) == ["other"]


# At most so many at once


def test_a_backend_never_has_more_requests_than_its_bound() -> None:
    """The others wait in line for it, and all are served, in the order in which they came."""
    bounded = PlannedBackend("bounded")
    pool = make_pool((bounded, Place(max_concurrency=3)))
    assert run_in_virtual_time(ask_at_once(pool, 20)) == ["bounded"] * 20
    assert bounded.in_flight_max == 3
    assert bounded.asked_at_s == [float(number // 3) for number in range(20)]


def test_what_a_full_backend_cannot_take_goes_to_the_next_choice() -> None:
    """Waiting is for when nobody has room."""
    bounded, other = PlannedBackend("bounded"), PlannedBackend("other")
    outcomes = run_in_virtual_time(ask_at_once(make_pool((bounded, Place(max_concurrency=2)), (other, LATER)), 5))
    assert Counter(outcomes) == {"bounded": 2, "other": 3}


def test_nobody_waits_in_line_for_longer_than_a_part_of_the_time_out() -> None:
    """Later there would be no time left for the reply."""
    full = PlannedBackend("full", takes_s=50.0)

    async def scenario() -> float:
        pool = make_pool((full, Place(max_concurrency=1)))
        first = asyncio.create_task(pool.ask(REQUEST))
        await asyncio.sleep(0)
        with pytest.raises(PoolError) as caught:
            await pool.ask(REQUEST)
        assert caught.value.tries == 0
        waited_s = now_s()
        await first
        return waited_s

    assert run_in_virtual_time(scenario()) == TIMEOUT_S * WAIT_SHARE_MAX
    assert len(full.asked_at_s) == 1


def test_a_client_that_leaves_the_line_or_a_call_leaves_its_place_to_the_next() -> None:
    """Also when the turn came in the very moment in which it left."""
    bounded = PlannedBackend("bounded", takes_s=2.0)

    async def scenario() -> list[str]:
        pool = make_pool((bounded, Place(max_concurrency=1)))
        calls = [asyncio.create_task(pool.ask(REQUEST)) for _ in range(6)]
        await asyncio.sleep(1)
        calls[2].cancel()  # is in line
        calls[0].cancel()  # is at the backend
        asyncio.get_running_loop().call_soon(calls[1].cancel)  # has then been handed the turn of the first
        replies = await asyncio.gather(*calls[3:])
        return [reply.reply.text for reply in replies]

    assert run_in_virtual_time(scenario()) == ["bounded"] * 3
    assert bounded.in_flight == 0
    assert bounded.in_flight_max == 1


def test_an_account_that_asks_for_much_delays_another_by_one_request() -> None:
    """Accounts are served in turn, and each in the order in which it has asked."""
    bounded = PlannedBackend("bounded", takes_s=2.0)

    async def scenario() -> list[tuple[str, float]]:
        pool = make_pool((bounded, Place(max_concurrency=1)))
        ended: list[tuple[str, float]] = []

        async def ask(account: str, name: str) -> None:
            await pool.ask(REQUEST, account)
            ended.append((name, now_s()))

        greedy = [asyncio.create_task(ask("greedy", f"greedy {number}")) for number in range(5)]
        await asyncio.sleep(1)
        modest = [asyncio.create_task(ask("modest", f"modest {number}")) for number in range(2)]
        await asyncio.gather(*greedy, *modest)
        return ended

    names = ["greedy 0", "greedy 1", "modest 0", "greedy 2", "modest 1", "greedy 3", "greedy 4"]
    assert run_in_virtual_time(scenario()) == [(name, 2.0 * place) for place, name in enumerate(names, start=1)]


def test_who_waits_for_a_second_choice_holds_nobody_up() -> None:
    """Behind one that has asked a backend in vain, others go on to it as it has room."""
    moody, full = PlannedBackend("moody", REFUSED_AT_ONCE, None), PlannedBackend("full", takes_s=20.0)

    async def scenario() -> float:
        pool = make_pool((moody, Place(max_concurrency=1)), (full, Place(max_concurrency=1, priority=1)))
        calls = [asyncio.create_task(pool.ask(REQUEST)) for _ in range(2)]
        await asyncio.sleep(1.5)  # the first has been refused and waits for the full one
        await ask_times(pool, 1)
        served_at_s = now_s()
        await asyncio.gather(*calls)
        return served_at_s

    assert run_in_virtual_time(scenario()) == 2.5


def test_who_has_asked_everybody_in_vain_does_not_stand_in_line() -> None:
    """However many wait for the same backend, for this one nobody is left."""
    full = PlannedBackend("full", REFUSED_AT_ONCE, None, takes_s=9.0)

    async def scenario() -> float:
        pool = make_pool((full, Place(max_concurrency=1)))
        first, *others = [asyncio.create_task(pool.ask(REQUEST)) for _ in range(4)]
        with pytest.raises(PoolError):
            await first
        failed_at_s = now_s()
        await asyncio.gather(*others)
        return failed_at_s

    assert run_in_virtual_time(scenario()) == 9.0


def test_who_has_only_a_tripped_backend_left_asks_it_past_those_who_wait_for_another() -> None:
    """They would rather have the other, and for this one there is nobody else."""
    down, full = PlannedBackend("down", *[REFUSED_AT_ONCE] * FAILURES_MAX, None, takes_s=0.0), PlannedBackend("full")

    async def scenario() -> float:
        pool = make_pool(down, (full, Place(max_concurrency=1, priority=1)))
        full.takes_s = 0.0
        await ask_times(pool, FAILURES_MAX)
        full.plans, full.takes_s = [REFUSED_AT_ONCE, None], REST_MIN_S / 2
        outcomes = await ask_at_once(pool, 5)
        assert outcomes[0] == "down"
        return down.asked_at_s[FAILURES_MAX]

    assert run_in_virtual_time(scenario()) == REST_MIN_S / 2


# Health


def test_a_tripped_backend_is_left_alone_while_others_serve() -> None:
    """After that, one request tries it; as it succeeds, load returns."""
    down = PlannedBackend("down", *[REFUSED_AT_ONCE] * FAILURES_MAX, None, takes_s=0.0)
    other = PlannedBackend("other", takes_s=0.1)

    async def scenario() -> None:
        pool = make_pool(down, (other, LATER))
        assert await ask_times(pool, FAILURES_MAX) == ["other"] * FAILURES_MAX
        tripped_at_s = down.asked_at_s[-1]
        await ask_at_once(pool, 50)
        assert len(down.asked_at_s) == FAILURES_MAX
        await asyncio.sleep(tripped_at_s + REST_MIN_S - now_s())
        assert await ask_times(pool, 5) == ["down"] * 5

    run_in_virtual_time(scenario())


def test_one_request_at_a_time_tries_a_tripped_backend() -> None:
    """The others are served elsewhere meanwhile; a trial that fails costs no caller its reply."""
    down, other = PlannedBackend("down", REFUSED_AT_ONCE), PlannedBackend("other", takes_s=0.1)

    async def scenario() -> None:
        pool = make_pool(down, (other, LATER))
        await ask_times(pool, FAILURES_MAX)
        await asyncio.sleep(2 * REST_MIN_S)
        assert await ask_at_once(pool, 50) == ["other"] * 50

    run_in_virtual_time(scenario())
    assert len(down.asked_at_s) == FAILURES_MAX + 1


def test_a_trial_whose_client_leaves_is_left_to_the_next() -> None:
    """It has told nothing."""
    down, other = PlannedBackend("down", *[REFUSED_AT_ONCE] * FAILURES_MAX, None), PlannedBackend("other")

    async def scenario() -> list[str]:
        pool = make_pool(down, (other, LATER))
        await ask_times(pool, FAILURES_MAX)
        await asyncio.sleep(REST_MIN_S)
        trial = asyncio.create_task(pool.ask(REQUEST))
        await asyncio.sleep(0.5)
        trial.cancel()
        await asyncio.wait([trial])
        return await ask_times(pool, 2)

    assert run_in_virtual_time(scenario()) == ["down", "down"]
    assert down.cancelled == 1


def test_when_all_rest_one_is_tried_early() -> None:
    """A model with one backend is back the moment its backend is: nobody is refused unasked."""
    alone = PlannedBackend("alone", *[REFUSED_AT_ONCE] * 10, None, takes_s=0.001)

    async def scenario() -> tuple[list[type], list[str]]:
        pool = make_pool(alone)
        failed = [type(outcome) for _ in range(10) for outcome in await ask_at_once(pool, 1)]
        return failed, await ask_times(pool, 3)

    assert run_in_virtual_time(scenario()) == ([PoolError] * 10, ["alone"] * 3)


def test_nobody_waits_for_a_slow_trial_when_there_is_no_other_backend() -> None:
    """A reply may take long; requests that come meanwhile are sent along, and one that succeeds ends the trials."""
    alone = PlannedBackend("alone", *[REFUSED_AT_ONCE] * FAILURES_MAX, None, takes_s=20.0)

    async def scenario() -> None:
        pool = make_pool(alone)
        for _ in range(FAILURES_MAX):
            await ask_at_once(pool, 1)
        assert await ask_at_once(pool, 5) == ["alone"] * 5
        assert pool.available

    run_in_virtual_time(scenario())
    assert len(set(alone.asked_at_s[FAILURES_MAX:])) == 1


def test_a_dying_backend_costs_nobody_a_reply() -> None:
    """With 40 requests at once and one of two backends down for 20 s, every caller is served, and load returns."""
    dying, other = PlannedBackend("dying", takes_s=0.2), PlannedBackend("other", takes_s=0.2)

    async def call_on(pool: Pool) -> None:
        while now_s() < 60:
            await ask_times(pool, 1)

    async def scenario() -> None:
        pool = make_pool(dying, other)
        loop = asyncio.get_running_loop()
        loop.call_at(20, lambda: setattr(dying, "plans", [Fault.UNREACHABLE]))
        loop.call_at(40, lambda: setattr(dying, "plans", [None]))
        await asyncio.gather(*(call_on(pool) for _ in range(40)))

    run_in_virtual_time(scenario())
    late = Counter(int(moment_s // 10) for moment_s in dying.asked_at_s)
    assert late[3] < 10  # trials alone
    assert late[5] > 0.4 * (late[5] + sum(50 <= moment_s < 60 for moment_s in other.asked_at_s))


def test_a_model_is_unavailable_while_all_its_backends_are_tripped() -> None:
    """With one beside it that is well, or once a rest is over, it is available."""
    down, other = PlannedBackend("down", REFUSED_AT_ONCE, takes_s=0.0), PlannedBackend("other", takes_s=0.0)

    async def scenario() -> None:
        pool, alone = make_pool(down, (other, LATER)), make_pool(down)
        seen = [(alone.available, pool.available)]
        for _ in range(FAILURES_MAX):
            await ask_at_once(alone, 1)
            await ask_at_once(pool, 1)
        seen.append((alone.available, pool.available))
        await asyncio.sleep(REST_MIN_S)
        seen.append((alone.available, pool.available))
        assert seen == [(True, True), (False, True), (True, True)]

    run_in_virtual_time(scenario())


# Anything at all


@given(data=st.data())
@settings(max_examples=300)
def test_whatever_backends_and_clients_do_nothing_is_left_behind(data: st.DataObject) -> None:
    """Every request ends within its deadline; no place, trial or waiter stays; no bound is passed."""
    faults = st.lists(st.sampled_from([None, None, *Fault, busy(3.0), busy()]), min_size=1, max_size=6)
    places = st.builds(
        Place,
        priority=st.integers(0, 1),
        weight=st.integers(1, 3),
        max_concurrency=st.none() | st.integers(1, 3),
        timeout_s=st.none() | st.just(5.0),
    )
    takes_s = st.sampled_from([0.0, 0.1, 2.0, 10.0, 100.0])
    members = [
        (PlannedBackend(str(number), *data.draw(faults), takes_s=data.draw(takes_s)), data.draw(places))
        for number in range(data.draw(st.integers(1, 4)))
    ]
    pool = make_pool(*members)
    stays_s = data.draw(st.lists(st.tuples(st.floats(0, 40), st.none() | st.floats(0, 30)), max_size=25))

    async def call(begin_s: float, leaves_after_s: float | None) -> None:
        await asyncio.sleep(begin_s)
        began_s = now_s()
        with suppress(PoolError, TimeoutError):
            async with asyncio.timeout(leaves_after_s):
                await pool.ask(REQUEST)
        assert now_s() - began_s <= TIMEOUT_S + 1e-6

    async def scenario() -> None:
        await asyncio.gather(*(call(*stay) for stay in stays_s))
        assert repr(pool) == f"<Pool small, {len(members)} backends, 0 in flight, 0 waiting>"
        assert not any(member.trials for member in pool.members)

    run_in_virtual_time(scenario())
    for backend, place in members:
        assert backend.in_flight_max <= (place.max_concurrency or len(stays_s))


# Busy backends


def test_a_busy_backend_is_left_alone_for_as_long_as_it_asks() -> None:
    """Then it is asked as before, by everybody."""
    first, other = PlannedBackend("first", busy(7.0), None), PlannedBackend("other")

    async def scenario() -> None:
        pool = make_pool(first, (other, LATER))
        assert await ask_times(pool, 5) == ["other"] * 5
        await asyncio.sleep(8.0 - now_s())
        assert await ask_at_once(pool, 3) == ["first"] * 3

    run_in_virtual_time(scenario())


def test_a_request_waits_for_a_busy_backend_when_there_is_no_other() -> None:
    """As far as its time allows: rather late than 502."""
    alone = PlannedBackend("alone", None, busy(7.0), None, takes_s=1.0)

    async def scenario() -> list[str]:
        pool = make_pool(alone)
        await ask_times(pool, 1)
        busy_ = asyncio.create_task(pool.ask(REQUEST))
        await asyncio.sleep(1.5)
        waiting = [asyncio.create_task(pool.ask(REQUEST)) for _ in range(3)]
        return [(await call).reply.text for call in (busy_, *waiting)]  # the first is the one that was told so

    assert run_in_virtual_time(scenario()) == ["alone"] * 4
    assert alone.asked_at_s == [0.0, 1.0, 9.0, 9.0, 9.0, 9.0]


def test_a_request_that_all_were_too_busy_for_waits_for_the_first_that_rests_no_more() -> None:
    """It is asked again, and the other one, which asks for more time than a request has, is not."""
    soon, late = PlannedBackend("soon", busy(7.0), None), PlannedBackend("late", busy(200.0), None)

    async def scenario() -> tuple[str, int]:
        answer = await make_pool(soon, late).ask(REQUEST)
        return answer.reply.text, answer.tries

    assert run_in_virtual_time(scenario()) == ("soon", 3)
    assert soon.asked_at_s == [0.0, 8.0]


def test_nobody_waits_in_vain_for_a_busy_backend() -> None:
    """One that asks for more time than a request may wait is given up at once, also by the one that was told so."""
    alone = PlannedBackend("alone", busy(TIMEOUT_S * WAIT_SHARE_MAX + 3.0), takes_s=1.0)

    async def scenario() -> float:
        pool = make_pool(alone)
        outcomes = [*await ask_at_once(pool, 1), *await ask_at_once(pool, 1)]
        assert [type(outcome) for outcome in outcomes] == [PoolError] * 2
        return now_s()

    assert run_in_virtual_time(scenario()) == 1.0
    assert len(alone.asked_at_s) == 1
