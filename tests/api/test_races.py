"""Races that users of such services report, made to happen in four processes at once: credits, limits, changes.

Each test is named after the fault. Requests go over lines, each to a process that is known, so that every process has
its share of every race. Chance decides nothing but the order.
"""

import asyncio
import json
import select
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random

import pytest

from tarazu.domain.accounts import AccountStatus
from tarazu.domain.credits import BALANCE_MAX
from tests.support.answers import (
    assert_paid,
    assert_refused,
    credits_left,
    is_replay,
    read_usage,
    states_of,
    statuses,
)
from tests.support.at_once import Call, at_once, held, wait_until
from tests.support.backend import Exchange, ScriptedBackend, answers, completion
from tests.support.envelopes import assert_own_error
from tests.support.four_processes import PROCESSES, FourProcesses, Line, four_processes
from tests.support.patience import PATIENCE_S
from tests.support.rows import rows
from tests.support.service import PATIENT, USAGE, Answer, Customer, RunningService
from tests.support.set_clock import SetClock
from tests.support.stores import Store
from tests.support.windows import Places, places
from tests.support.wire import chat_head

CATALOGUE_OF_RACES = (
    PATIENT
    + """
[plans.one]
monthly_credits = 1
requests_per_minute = 100000

[plans.once]
monthly_credits = 1000
requests_per_minute = 1

[models."test/slow"]
credits = 2
timeout_s = 60
[[models."test/slow".backends]]
kind = "openai"
url = "BACKEND"
model = "slow"
"""
)
LINES = 60
ROUNDS = 5
SOON_S = 0.05
SLOW_HOLD_S = 60 + 30
"""How long after its admission a hold of test/slow may be swept."""
LAST_OF_FEBRUARY = "2026-02-28T23:59:59.999Z"
FIRST_OF_MARCH = "2026-03-01T00:00:00Z"
NEXT_MINUTE = "2026-02-10T12:01:00Z"
BODY = b'{"prompt": "Hello"}'

pytestmark = [pytest.mark.both_stores, pytest.mark.usefixtures("noon")]


@pytest.fixture(scope="module")
def four(
    store: Store, module_backend: ScriptedBackend, clock: SetClock, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FourProcesses]:
    """The four processes; at the end their books must balance."""
    folder = tmp_path_factory.mktemp("four")
    with four_processes(clock, store, folder, module_backend.url, catalogue=CATALOGUE_OF_RACES) as four:
        yield four


@pytest.fixture
def lines(four: FourProcesses) -> Iterator[list[Line]]:
    """Sixty lines, fifteen to each process in turn."""
    with four.lines(LINES // PROCESSES) as lines:
        yield lines


@pytest.fixture
def service(four: FourProcesses) -> RunningService:
    """The service through whose books the test acts and looks."""
    return four.first


def shared(lines: Sequence[Line], *customers: Customer) -> list[Call]:
    """Make the calls by which the customers share the lines, each having as many to every process."""
    share = len(lines) // len(customers)
    assert share % PROCESSES == 0
    return [partial(line.chat, customers[place // share]) for place, line in enumerate(lines[: share * len(customers)])]


# Parallel calls overdraw the balance


@rows("decisions.credits.2")
def test_what_one_process_has_charged_every_process_shows(service: RunningService, lines: list[Line]) -> None:
    """There is one number, in one place."""
    customer = service.customer("three")
    for line in lines[:3]:
        assert_paid(line.chat(customer), 1, "plan")
    for line in lines[:PROCESSES]:
        assert read_usage(line, customer)["api_credits"] == {"used": 3, "limit": 3, "remaining": 0}


@rows("decisions.credits.2")
@pytest.mark.parametrize(
    ("plan", "balance", "code"),
    [("three", 0, "api_credits_exhausted"), (None, 3, "upgrade_required"), ("one", 2, "api_credits_exhausted")],
)
def test_parallel_calls_over_five_keys_do_not_overdraw_three_credits(
    service: RunningService, lines: list[Line], backend: ScriptedBackend, plan: str | None, balance: int, code: str
) -> None:
    """Of 60 exactly 3 are served, from quota, balance or both; what is in flight is spent already."""
    customer = service.customer(plan, balance=balance)
    keys = [customer, *(service.another_key(customer) for _ in range(4))]
    with held(backend, *shared(lines, *keys), admitted=3) as asked:
        refused = [future.result() for future in islice(as_completed(asked, PATIENCE_S), 57)]
        assert credits_left(service, customer) == (0, 0)
    for answer in refused:
        assert (answer.status, answer.code) == (402, code)
    found = [future.result() for future in asked]
    assert statuses(found) == [200] * 3 + [402] * 57
    sources = [answer.json["usage"]["billing_source"] for answer in found if answer.status == 200]
    assert sources.count("api_balance") == balance
    assert len(backend.received) == 3
    assert credits_left(service, customer) == (0, 0)
    assert states_of(service, customer) == ["charged"] * 3


def test_parallel_calls_whose_model_fails_bring_every_credit_back(
    service: RunningService, lines: list[Line], backend: ScriptedBackend
) -> None:
    """Each is 502 or 402, however holds and returns cross; in the end the three credits are there."""
    backend.behaviour = answers(b"broken", status=500)
    customer = service.customer("three")
    found = at_once(shared(lines, customer))
    assert set(statuses(found)) <= {402, 502}
    assert statuses(found).count(502) >= 3
    wait_until(lambda: credits_left(service, customer) == (3, 0))
    assert set(states_of(service, customer)) == {"released"}


def test_top_ups_and_charges_at_once_lose_nothing(service: RunningService, lines: list[Line]) -> None:
    """Twenty requests and ten payments on one balance: nothing is read by one and written over by another."""
    customer = service.customer(None, balance=20)

    def pay(number: int) -> None:
        service.provisioning.add_credit(customer.account_id, 5, reference=f"{number} of {customer.account_id}")

    def chat(line: Line) -> None:
        assert_paid(line.chat(customer), 1, "api_balance")

    calls: list[Callable[[], None]] = [partial(chat, line) for line in lines[:20]]
    calls += [partial(pay, number) for number in range(10)]
    at_once(calls)
    assert credits_left(service, customer) == (0, 50)


def test_the_same_top_up_posted_at_once_counts_once(service: RunningService) -> None:
    """By eight processes: the reference is unique, and only one of them says that it has added."""
    customer = service.customer(None)

    def top_up() -> bool:
        done = service.run("credit", "add", customer.account_id, "40", "--reference", customer.account_id, "--json")
        assert done.returncode == 0, done.stderr
        added: bool = json.loads(done.stdout)["added"]
        return added

    assert sorted(at_once([top_up] * 8)) == [False] * 7 + [True]
    assert credits_left(service, customer) == (0, 40)


def test_big_accounts_are_held_too(service: RunningService, lines: list[Line], backend: ScriptedBackend) -> None:
    """Nobody is trusted: the credits of the biggest balance are taken before the model is asked, in every process."""
    customer = service.customer(None, balance=BALANCE_MAX)
    with held(backend, *shared(lines[:PROCESSES], customer)) as asked:
        assert credits_left(service, customer) == (0, BALANCE_MAX - PROCESSES)
        assert states_of(service, customer) == ["held"] * PROCESSES
    for future in asked:
        assert_paid(future.result(), 1, "api_balance")


# The first requests race past the limit


@rows("spec.limits.monthly_api_credits")
def test_the_first_calls_of_a_new_account_do_not_pass_a_quota_of_one(
    service: RunningService, lines: list[Line], backend: ScriptedBackend
) -> None:
    """Of eight one is served, though there was no row of it before."""
    customer = service.customer("one")
    with held(backend, *shared(lines[:8], customer), admitted=1) as asked:
        pass
    assert statuses([future.result() for future in asked]) == [200] + [402] * 7
    assert credits_left(service, customer) == (0, 0)


@rows("spec.limits.monthly_api_credits")
def test_the_first_calls_of_a_new_month_do_not_pass_a_quota_of_one(
    service: RunningService, lines: list[Line], backend: ScriptedBackend, clock: SetClock
) -> None:
    """Of eight one is served: the month turns once, under the first of them."""
    customer = service.customer("one")
    assert statuses([service.chat(customer) for _ in range(2)]) == [200, 402]
    clock.set(FIRST_OF_MARCH)
    with held(backend, *shared(lines[:8], customer), admitted=1) as asked:
        pass
    assert statuses([future.result() for future in asked]) == [200] + [402] * 7
    assert read_usage(service, customer)["api_credits"] == {"used": 1, "limit": 1, "remaining": 0}


@rows("decisions.credits.4")
def test_the_month_turns_at_once_in_every_process(
    service: RunningService, lines: list[Line], backend: ScriptedBackend, clock: SetClock
) -> None:
    """Processes that have served the old month show the new one, and serve its quota once, old requests aside."""
    customer = service.customer("three")
    clock.set(LAST_OF_FEBRUARY)  # close enough to March that nothing is overdue then
    old, others = lines[:3], lines[PROCESSES:]
    with held(backend, *[partial(line.chat, customer, "Late") for line in old], only="Late") as late:
        assert statuses(at_once(shared(lines[PROCESSES : 2 * PROCESSES], customer))) == [402] * PROCESSES
        clock.set(FIRST_OF_MARCH)
        for line in others[:PROCESSES]:
            usage = read_usage(line, customer)
            assert (usage["period"], usage["api_credits"]["remaining"]) == ("2026-03", 3)
        assert statuses(at_once(shared(others, customer))) == [200] * 3 + [402] * 53
    assert statuses([future.result() for future in late]) == [200] * 3
    assert read_usage(service, customer)["api_credits"] == {"used": 3, "limit": 3, "remaining": 0}


# Ends of holds get lost, or come twice


def test_overlapping_accounts_settle_without_deadlock(service: RunningService, lines: list[Line]) -> None:
    """Sixty callers go through ten accounts, each in an order of its own: all are served and charged, none is stuck."""
    customers = [service.customer(balance=100) for _ in range(10)]

    def ask(line: Line, place: int) -> list[Answer]:
        return [line.chat(customer) for customer in Random(place).sample(customers, 10)]  # noqa: S311 - an order

    found = at_once([partial(ask, line, place) for place, line in enumerate(lines)])
    assert {answer.status for of_a_line in found for answer in of_a_line} == {200}
    assert [service.account(customer).used for customer in customers] == [LINES] * 10


def test_a_hold_ends_once_though_its_reply_comes_after_its_sweep(
    service: RunningService, lines: list[Line], backend: ScriptedBackend, clock: SetClock
) -> None:
    """Two of each process are swept after their deadline, by any process; their late replies change nothing."""
    customer = service.customer("one", balance=100)
    calls = [partial(line.chat, customer, model="test/slow") for line in lines[:8]]
    with held(backend, *calls) as asked:
        assert credits_left(service, customer) == (1, 84)
        clock.advance(SLOW_HOLD_S + 1)
        wait_until(lambda: credits_left(service, customer) == (1, 100))
    for future in asked:
        assert_refused(future.result(), 502, "upstream_error")
    assert credits_left(service, customer) == (1, 100)
    assert states_of(service, customer) == ["swept"] * 8


@rows("decisions.reply.4")
def test_clients_that_leave_around_their_replies_have_paid_or_get_it_back(
    service: RunningService, lines: list[Line], backend: ScriptedBackend
) -> None:
    """Sixty leave at as many moments, at every process: no hold stays, and whoever got a reply has paid for it."""
    backend.behaviour = answers_soon
    customer = service.customer(balance=LINES)
    chance = Random(4)  # noqa: S311 - moments

    def leave(line: Line, stays_s: float) -> bool:
        line.socket.sendall(chat_head(customer, f"Content-Length: {len(BODY)}") + BODY)
        is_answered = select.select([line.socket], [], [], stays_s)[0] != []
        line.close()
        return is_answered

    answered = sum(at_once([partial(leave, line, chance.uniform(0, 2 * SOON_S)) for line in lines]))
    wait_until(lambda: "held" not in states_of(service, customer))
    states = states_of(service, customer)
    assert set(states) <= {"charged", "released"}
    assert answered <= states.count("charged")
    wait_until(lambda: service.account(customer).used == states_of(service, customer).count("charged"))


async def answers_soon(exchange: Exchange) -> None:
    """Reply after a moment."""
    await asyncio.sleep(SOON_S)
    await exchange.send(200, completion())


@rows("decisions.idempotency.1")
def test_a_request_sent_again_while_it_runs_is_charged_once(
    service: RunningService, lines: list[Line], backend: ScriptedBackend
) -> None:
    """Of eight with one idempotency key one is served, the others are told to wait; later all get its reply."""
    customer = service.customer()
    calls = [partial(line.post, customer, BODY, Idempotency_Key="the same") for line in lines[:8]]
    with held(backend, *calls, admitted=1) as asked:
        for future in islice(as_completed(asked, PATIENCE_S), 7):
            assert_own_error(future.result(), 409)
            assert future.result().headers["retry-after"] == "1"
    [served] = [future.result() for future in asked if future.result().status == 200]
    assert not is_replay(served)
    after = at_once(calls)
    assert all(map(is_replay, after))
    assert {answer.body for answer in after} == {served.body}
    assert len(backend.received) == 1
    assert credits_left(service, customer) == (999_999, 0)
    assert places(service, customer).account == 16


@rows("decisions.idempotency.1")
def test_a_request_sent_again_at_once_is_charged_once(
    service: RunningService, lines: list[Line], backend: ScriptedBackend
) -> None:
    """Round after round with a model that is quick: one of twenty is served, the others wait or get the same bytes."""
    customer = service.customer()
    for number in range(ROUNDS):
        calls = [partial(line.post, customer, BODY, Idempotency_Key=f"round {number}") for line in lines[:20]]
        found = at_once(calls)
        assert set(statuses(found)) <= {200, 409}
        good = [answer for answer in found if answer.status == 200]
        assert [is_replay(answer) for answer in good].count(False) == 1
        assert len({answer.body for answer in good}) == 1
    assert len(backend.received) == ROUNDS
    assert credits_left(service, customer) == (1_000_000 - ROUNDS, 0)


# Limits


@rows("decisions.rate_limit.1", "spec.limits.requests_per_minute")
def test_a_limit_is_not_multiplied_by_the_number_of_processes(
    service: RunningService, lines: list[Line], backend: ScriptedBackend
) -> None:
    """Of 60 over three keys on 3 a minute exactly 3 are served; the others are refused while these still run."""
    customer = service.customer("narrow")
    keys = [customer, *(service.another_key(customer) for _ in range(2))]
    with held(backend, *shared(lines, *keys), admitted=3) as asked:
        refused = [future.result() for future in islice(as_completed(asked, PATIENCE_S), 57)]
    found = [future.result() for future in asked]
    assert statuses(refused) == [429] * 57
    assert statuses(found) == [200] * 3 + [429] * 57
    assert sorted(remaining(answer) for answer in found) == [0] * 58 + [1, 2]
    assert len(backend.received) == 3
    assert credits_left(service, customer) == (997, 0)


@rows("decisions.rate_limit.1")
def test_a_limit_of_one_serves_one_of_eight(service: RunningService, lines: list[Line]) -> None:
    """Not none and not two, account after account; what is left is nought for each, and never less."""
    for _ in range(ROUNDS):
        customer = service.customer("once")
        found = at_once(shared(lines[:8], customer))
        assert statuses(found) == [200] + [429] * 7
        assert [remaining(answer) for answer in found] == [0] * 8
        assert read_usage(service, customer)["rate_limit"]["remaining"] == 0


@rows("decisions.rate_limit.1")
def test_the_first_calls_of_a_minute_do_not_race_for_its_window(
    service: RunningService, lines: list[Line], clock: SetClock
) -> None:
    """Of 60 in a new minute exactly 3 are served, as in the one before."""
    customer = service.customer("narrow")
    for minute in (None, NEXT_MINUTE):
        if minute is not None:
            clock.set(minute)
        assert statuses(at_once(shared(lines, customer))) == [200] * 3 + [429] * 57


@rows("decisions.rate_limit.1")
def test_two_limits_are_kept_at_once(service: RunningService, lines: list[Line]) -> None:
    """A key with 1 a minute serves 1 at most, the account 3; what one limit refuses takes nothing of the other."""
    customer = service.customer("narrow")
    key = service.another_key(customer, limit_per_minute=1)
    found = at_once(shared(lines[:56], customer, key))
    assert statuses(found) == [200] * 3 + [429] * 53
    by_key = [answer.status for answer in found[28:]].count(200)
    assert by_key <= 1
    assert places(service, key) == Places(account=3, key=by_key)


@rows("spec.codes.system_stopped")
def test_a_malformed_request_keeps_no_slot(
    store: Store, backend: ScriptedBackend, clock: SetClock, tmp_path: Path
) -> None:
    """Broken and abandoned ones leave room for two in each process that has it; a third is told to come back."""
    with (
        four_processes(
            clock, store, tmp_path, backend.url, server="max_in_flight = 2\nmax_in_flight_per_account = 2"
        ) as four,
        four.lines(6) as lines,
    ):
        customer = four.first.customer()
        abandoned, kept = lines[: 3 * PROCESSES], lines[3 * PROCESSES :]
        broken = (b"{", b"[]", b"\xff", b"{}", b'{"prompt": 1}', b'{"stream": true}')
        for body in broken:
            for line in kept[:PROCESSES]:
                assert line.post(customer, body).status in {400, 422}
        for taken, line in enumerate(abandoned, len(broken) * PROCESSES + 1):
            line.socket.sendall(chat_head(customer, f"Content-Length: {len(BODY)}") + BODY[:5])
            line.close()
            wait_until(partial(_has_taken, four.first, customer, taken))
        assert [credits_left(line, customer) for line in kept[:PROCESSES]] == [(1_000_000, 0)] * PROCESSES
        with held(backend, *shared(kept[: 2 * PROCESSES], customer)) as asked:
            for line in kept[2 * PROCESSES :]:
                assert_refused(line.chat(customer), 503, "system_stopped", counted=False)
        assert statuses([future.result() for future in asked]) == [200] * 2 * PROCESSES
        assert four.first.account(customer).used == 2 * PROCESSES


def _has_taken(service: RunningService, customer: Customer, number: int) -> bool:
    return places(service, customer).account == number


# Changes while requests are in flight


@rows("decisions.order_of_checks.4")
def test_a_revoked_key_works_in_no_process_more(
    service: RunningService, lines: list[Line], backend: ScriptedBackend
) -> None:
    """What is in flight is served and paid; every request from then on is refused, wherever it goes."""
    customer = service.customer()
    with held(backend, *shared(lines[:PROCESSES], customer)) as asked:
        service.provisioning.revoke_key(customer.key_id)
        later = lines[PROCESSES:]
        for answer in at_once(shared(later, customer)) + [line.get(USAGE, customer) for line in later[:PROCESSES]]:
            assert_refused(answer, 401, "invalid_api_key", counted=False)
    for future in asked:
        assert_paid(future.result(), 1, "plan")
    assert service.account(customer).used == PROCESSES


@rows("decisions.order_of_checks.5")
@pytest.mark.parametrize("status", [AccountStatus.BLOCKED, AccountStatus.INACTIVE, AccountStatus.UNVERIFIED])
def test_a_blocked_account_is_served_in_no_process_more(
    service: RunningService, lines: list[Line], backend: ScriptedBackend, status: AccountStatus
) -> None:
    """What is in flight is served and paid; then 403 for every key, until the account is active again."""
    customer = service.customer()
    other = service.another_key(customer)
    later = lines[PROCESSES : 3 * PROCESSES]
    with held(backend, *shared(lines[:PROCESSES], customer)) as asked:
        service.provisioning.set_account(customer.account_id, status=status)
        for answer in at_once(shared(later, customer, other)) + [line.get(USAGE, other) for line in later]:
            assert_refused(answer, 403, "account_unavailable", counted=False)
        service.provisioning.set_account(customer.account_id, status=AccountStatus.ACTIVE)
    for answer in [future.result() for future in asked] + at_once(shared(later, customer, other)):
        assert_paid(answer, 1, "plan")


@rows("decisions.order_of_checks.6", "spec.codes.system_stopped")
def test_a_stopped_intake_takes_requests_in_no_process(
    service: RunningService, lines: list[Line], backend: ScriptedBackend
) -> None:
    """What is in flight is served and paid; then 503 for all, with the time that the operator gave, until resumed."""
    customer = service.customer()
    later = lines[PROCESSES:]
    with held(backend, *shared(lines[:PROCESSES], customer)) as asked:
        try:
            service.provisioning.stop_intake(retry_after_s=77)
            for answer in at_once(shared(later, customer)):
                assert_refused(answer, 503, "system_stopped", counted=False)
                assert answer.headers["retry-after"] == "77"
        finally:
            service.provisioning.resume_intake()
    for answer in [future.result() for future in asked] + at_once(shared(later, customer)):
        assert_paid(answer, 1, "plan")
    assert service.account(customer).used == LINES


@rows("decisions.order_of_checks.14")
def test_a_plan_that_is_taken_away_serves_in_no_process_more(
    service: RunningService, lines: list[Line], backend: ScriptedBackend
) -> None:
    """What is in flight is served from the plan that admitted it; then there is nothing to pay with."""
    customer = service.customer()
    with held(backend, *shared(lines[:PROCESSES], customer)) as asked:
        service.provisioning.set_account(customer.account_id, plan=None)
        for answer in at_once(shared(lines[PROCESSES:], customer)):
            assert_refused(answer, 402, "upgrade_required")
    for future in asked:
        assert_paid(future.result(), 1, "plan")


def remaining(answer: Answer) -> int:
    """Read what is left of the minute."""
    return int(answer.headers["x-ratelimit-remaining"])
