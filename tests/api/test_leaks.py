"""What users of such services report, made to happen: races for credits, holds that leak, changes in mid-flight.

Each test is named after a row of the faults seen in the field. Their other rows are in the modules of their noun:
limits in test_rate_limit, listings in test_models, the turn of the month and killed processes in test_credits.
"""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import as_completed
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tarazu.domain.accounts import AccountStatus
from tarazu.service.provisioning import BALANCE_MAX
from tests.support.answers import assert_paid, assert_refused, credits_left, look, read_usage, states_of, statuses
from tests.support.at_once import at_once, held, wait_until
from tests.support.backend import (
    EVENT_TIMEOUT_S,
    Behaviour,
    ScriptedBackend,
    answers,
    closes_in_body,
    replies,
    resets,
    resets_in_body,
    stalls,
    stalls_in_body,
)
from tests.support.processes import books_being_written
from tests.support.rows import rows
from tests.support.service import CATALOGUE, USAGE, Customer, RunningService
from tests.support.set_clock import SetClock, service_by
from tests.support.stores import Store
from tests.support.windows import places
from tests.support.wire import Wire, chat_head

CATALOGUE_OF_RACES = (
    CATALOGUE
    + """
[plans.one]
monthly_credits = 1
requests_per_minute = 100000

[models."test/slow"]
credits = 2
timeout_s = 60
[[models."test/slow".backends]]
kind = "openai"
url = "BACKEND"
model = "slow"

[models."test/nowhere"]
credits = 2
timeout_s = 5
[[models."test/nowhere".backends]]
kind = "openai"
url = "http://127.0.0.1:9/v1"
model = "nobody listens"

[models."test/second"]
credits = 2
timeout_s = 5
[[models."test/second".backends]]
kind = "openai"
url = "http://127.0.0.1:9/v1"
model = "nobody listens"
[[models."test/second".backends]]
kind = "openai"
url = "BACKEND"
model = "second"
"""
)
SLOW_HOLD_S = 60 + 30
"""How long after its admission a hold of test/slow may be swept."""
BODY = b'{"prompt": "Hello"}'

pytestmark = pytest.mark.usefixtures("noon")


@pytest.fixture(scope="module")
def service(
    store: Store, module_backend: ScriptedBackend, tmp_path_factory: pytest.TempPathFactory, clock: SetClock
) -> Iterator[RunningService]:
    """A running service that tells the time by the test's clock; at the end its books must balance."""
    folder = tmp_path_factory.mktemp("service")
    with service_by(
        clock, folder, module_backend.url, catalogue=CATALOGUE_OF_RACES, database_url=store.new_books(folder)
    ) as running:
        yield running


# Parallel calls overdraw the balance


@rows("decisions.credits.2")
@pytest.mark.parametrize(
    ("plan", "balance", "code"),
    [("three", 0, "api_credits_exhausted"), (None, 3, "upgrade_required"), ("one", 2, "api_credits_exhausted")],
)
def test_sixty_requests_at_once_over_five_keys_on_three_credits(
    service: RunningService, backend: ScriptedBackend, plan: str | None, balance: int, code: str
) -> None:
    """Exactly 3 replies and 57 times 402, from quota, balance or both; what is in flight is spent already."""
    customer = service.customer(plan, balance=balance)
    keys = [customer, *(service.another_key(customer) for _ in range(4))]
    with held(backend, *(partial(service.chat, key) for key in keys * 12), admitted=3) as asked:
        refused = [future.result() for future in islice(as_completed(asked, EVENT_TIMEOUT_S), 57)]
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


def test_sixty_requests_at_once_whose_model_fails_bring_every_credit_back(
    service: RunningService, backend: ScriptedBackend
) -> None:
    """Each is 502 or 402, however holds and returns cross; in the end the three credits are there."""
    backend.behaviour = answers(b"broken", status=500)
    customer = service.customer("three")
    found = at_once([partial(service.chat, customer)] * 60)
    assert set(statuses(found)) <= {402, 502}
    assert statuses(found).count(502) >= 3
    assert credits_left(service, customer) == (3, 0)
    assert set(states_of(service, customer)) == {"released"}


def test_top_ups_and_charges_at_once_lose_nothing(service: RunningService) -> None:
    """Twenty requests and ten payments on one balance: each counts, once."""
    customer = service.customer(None, balance=20)

    def pay(number: int) -> None:
        service.provisioning.add_credit(customer.account_id, 5, reference=f"{number} of {customer.account_id}")

    def chat() -> None:
        assert_paid(service.chat(customer), 1, "api_balance")

    calls: list[Callable[[], None]] = [chat] * 20
    calls += [partial(pay, number) for number in range(10)]
    at_once(calls)
    assert credits_left(service, customer) == (0, 50)


def test_the_same_top_up_posted_eight_times_at_once_counts_once(service: RunningService) -> None:
    """The reference is unique under a race too, and only one of the posts says that it has added."""
    customer = service.customer(None)

    def top_up() -> bool:
        return service.provisioning.add_credit(customer.account_id, 40, reference=f"once {customer.account_id}")[1]

    assert sorted(at_once([top_up] * 8)) == [False] * 7 + [True]
    assert credits_left(service, customer) == (0, 40)


def test_big_accounts_are_held_too(service: RunningService, backend: ScriptedBackend) -> None:
    """Nobody is trusted: the credits of the biggest balance are taken before the model is asked."""
    customer = service.customer(None, balance=BALANCE_MAX)
    with held(backend, partial(service.chat, customer)) as (asked,):
        assert credits_left(service, customer) == (0, BALANCE_MAX - 1)
        assert states_of(service, customer) == ["held"]
    assert_paid(asked.result(), 1, "api_balance")


# The first requests race past the limit


@rows("spec.limits.monthly_api_credits")
def test_eight_first_calls_of_a_new_account_on_a_quota_of_one(
    service: RunningService, backend: ScriptedBackend
) -> None:
    """One reply, though there was no row of it before."""
    customer = service.customer("one")
    with held(backend, *[partial(service.chat, customer)] * 8, admitted=1) as asked:
        pass
    assert statuses([future.result() for future in asked]) == [200] + [402] * 7
    assert credits_left(service, customer) == (0, 0)


@rows("spec.limits.monthly_api_credits")
def test_eight_first_calls_of_a_new_month_on_a_quota_of_one(
    service: RunningService, backend: ScriptedBackend, clock: SetClock
) -> None:
    """One reply: the month turns once, under the first of them."""
    customer = service.customer("one")
    assert statuses([service.chat(customer) for _ in range(2)]) == [200, 402]
    clock.set("2026-03-01T00:00:00Z")
    with held(backend, *[partial(service.chat, customer)] * 8, admitted=1) as asked:
        pass
    assert statuses([future.result() for future in asked]) == [200] + [402] * 7
    assert read_usage(service, customer)["api_credits"] == {"used": 1, "limit": 1, "remaining": 0}


def test_overlapping_accounts_settle_without_deadlock(service: RunningService) -> None:
    """Ten accounts, eight requests each, all at once: every one is served, every account charged its own."""
    customers = [service.customer("basic") for _ in range(10)]
    found = at_once([partial(service.chat, customer) for customer in customers * 8])
    assert statuses(found) == [200] * 80
    assert [credits_left(service, customer) for customer in customers] == [(2, 0)] * 10


# Holds leak


@rows("spec.codes.rule_2")
@pytest.mark.parametrize(
    ("model", "behaviour"),
    [
        pytest.param("test/nowhere", replies(), id="connection refused"),
        pytest.param("test/hasty", stalls, id="stalls"),
        pytest.param("test/hasty", stalls_in_body, id="stalls in the body"),
        pytest.param("test/two", closes_in_body, id="closes in the body"),
        pytest.param("test/two", resets, id="resets"),
        pytest.param("test/two", resets_in_body, id="resets in the body"),
    ],
)
def test_a_hold_does_not_leak_when_the_backend_fails(
    service: RunningService, backend: ScriptedBackend, model: str, behaviour: Behaviour
) -> None:
    """Three in a row: each ends in a release, and the fourth, with a model that works, is served."""
    backend.behaviour = behaviour
    customer = service.customer("three")
    for _ in range(3):
        assert_refused(service.chat(customer, model=model), 502, "upstream_error")
    assert credits_left(service, customer) == (3, 0)
    assert states_of(service, customer) == ["released"] * 3
    backend.reset()
    assert_paid(service.chat(customer), 1, "plan")


def test_a_hold_ends_once_though_the_reply_comes_after_its_sweep(
    service: RunningService, backend: ScriptedBackend, clock: SetClock
) -> None:
    """Swept after its deadline, its credits are back; the late reply is no longer given, and changes nothing."""
    customer = service.customer("one", balance=10)
    with held(backend, partial(service.chat, customer, model="test/slow")) as (asked,):
        assert credits_left(service, customer) == (1, 8)
        clock.advance(SLOW_HOLD_S + 1)
        wait_until(lambda: credits_left(service, customer) == (1, 10))
    assert_refused(asked.result(), 502, "upstream_error")
    assert credits_left(service, customer) == (1, 10)
    assert states_of(service, customer) == ["swept"]


@rows("spec.codes.upstream_error")
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"null", id="null"),
        pytest.param(b"<html><body>Welcome</body></html>", id="html"),
        pytest.param(b'{"choices": []}', id="no choice"),
        pytest.param(b'{"choices": [{"message": {"role": "assistant", "content": null}}]}', id="null text"),
        pytest.param(b'{"choices": [{"message": {"role": "assistant", "content": " \\n"}}]}', id="blank text"),
    ],
)
def test_an_empty_null_or_html_reply_with_status_200_is_not_charged(
    service: RunningService, backend: ScriptedBackend, body: bytes
) -> None:
    """502, and the credits are back."""
    backend.behaviour = answers(body)
    customer = service.customer("three")
    assert_refused(service.chat(customer), 502, "upstream_error")
    assert credits_left(service, customer) == (3, 0)


@rows("decisions.reply.4")
def test_a_client_that_leaves_pays_nothing_and_its_backend_call_is_cancelled(
    service: RunningService, backend: ScriptedBackend
) -> None:
    """It does not run on for nobody: the backend sees its end long before the model's time-out of a minute."""
    backend.behaviour = stalls
    customer = service.customer("three")
    body = b'{"prompt": "Hello", "model": "test/slow"}'
    with Wire(service.port) as wire:
        wire.send(chat_head(customer, f"Content-Length: {len(body)}") + body)
        backend.wait_for_requests(1)
        assert credits_left(service, customer) == (1, 0)
    backend.wait_for_leaving()
    wait_until(lambda: credits_left(service, customer) == (3, 0))
    assert states_of(service, customer) == ["released"]


@rows("decisions.reply.4")
def test_a_client_that_leaves_after_the_first_byte_has_paid(service: RunningService) -> None:
    """The charge is in the books before the reply is on its way, and stays there."""
    customer = service.customer("three")
    with Wire(service.port) as wire:
        wire.send(chat_head(customer, f"Content-Length: {len(BODY)}") + BODY)
        assert wire.socket.recv(1) == b"H"
        assert states_of(service, customer) == ["charged"]
    assert credits_left(service, customer) == (2, 0)
    assert states_of(service, customer) == ["charged"]


def test_backend_tries_are_one_request_and_one_charge(service: RunningService, backend: ScriptedBackend) -> None:
    """The first backend refuses, the second replies: one row, two tries in it, the price once."""
    customer = service.customer("three")
    assert_paid(service.chat(customer, model="test/second"), 2, "plan")
    assert len(backend.received) == 1
    query = "SELECT state, credits, tries FROM requests WHERE account_id = :id"
    assert look(service, query, id=customer.account_id) == [("charged", 2, 2)]
    assert credits_left(service, customer) == (1, 0)


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": -5, "completion_tokens": -1_000_000},
        {"prompt_tokens": float("nan"), "completion_tokens": float("inf")},
        {"prompt_tokens": "many", "completion_tokens": [1]},
        {"prompt_tokens": 10**30, "completion_tokens": 10**18},
        {"credits": 0, "billing_source": "nobody", "total_tokens": -1},
        [],
        "free of charge",
    ],
    ids=str,
)
def test_hostile_usage_from_a_backend_moves_no_money(
    service: RunningService, backend: ScriptedBackend, usage: Any
) -> None:
    """The price is the price, and the figures shown are sensible ones."""
    backend.behaviour = replies("Hello there.", usage)
    customer = service.customer("three")
    answer = service.chat(customer)
    if answer.status == 200:  # NaN is no JSON: then the whole reply is not valid
        assert_paid(answer, 1, "plan")
        shown = answer.json["usage"]
        assert 0 < shown["prompt_tokens"] < 100
        assert 0 < shown["completion_tokens"] < 100
        assert shown["total_tokens"] == shown["prompt_tokens"] + shown["completion_tokens"]
        assert credits_left(service, customer) == (2, 0)
    else:
        assert "NaN" in json.dumps(usage)
        assert_refused(answer, 502, "upstream_error")
        assert credits_left(service, customer) == (3, 0)


# Changes while requests are in flight


@rows("decisions.order_of_checks.4")
def test_a_revoked_key_works_for_no_request_more(service: RunningService, backend: ScriptedBackend) -> None:
    """What is in flight is served and paid; every request from then on is refused, however many come at once."""
    customer = service.customer("basic")
    with held(backend, *[partial(service.chat, customer)] * 3) as asked:
        service.provisioning.revoke_key(customer.key_id)
        for answer in at_once([partial(service.chat, customer)] * 10):
            assert_refused(answer, 401, "invalid_api_key", counted=False)
        assert_refused(service.get(USAGE, customer), 401, "invalid_api_key", counted=False)
    for future in asked:
        assert_paid(future.result(), 1, "plan")
    assert service.account(customer).used == 3


@rows("decisions.order_of_checks.5")
@pytest.mark.parametrize("status", [AccountStatus.BLOCKED, AccountStatus.INACTIVE, AccountStatus.UNVERIFIED])
def test_a_blocked_account_gets_no_request_more(
    service: RunningService, backend: ScriptedBackend, status: AccountStatus
) -> None:
    """What is in flight is served and paid; then 403 for every key, until the account is active again."""
    customer = service.customer("basic")
    other = service.another_key(customer)
    with held(backend, partial(service.chat, customer)) as (asked,):
        service.provisioning.set_account(customer.account_id, status=status)
        for key in (customer, other):
            assert_refused(service.chat(key), 403, "account_unavailable", counted=False)
            assert_refused(service.get(USAGE, key), 403, "account_unavailable", counted=False)
        service.provisioning.set_account(customer.account_id, status=AccountStatus.ACTIVE)
    assert_paid(asked.result(), 1, "plan")
    assert_paid(service.chat(other), 1, "plan")


@rows("decisions.order_of_checks.6", "spec.codes.system_stopped")
def test_a_stopped_intake_takes_no_request_more(service: RunningService, backend: ScriptedBackend) -> None:
    """What is in flight is served and paid; then 503 for all, with the time that the operator gave, until resumed."""
    customer = service.customer("basic")
    with held(backend, partial(service.chat, customer)) as (asked,):
        try:
            service.provisioning.stop_intake(retry_after_s=77)
            for answer in at_once([partial(service.chat, customer)] * 10):
                assert_refused(answer, 503, "system_stopped", counted=False)
                assert answer.headers["retry-after"] == "77"
        finally:
            service.provisioning.resume_intake()
    assert_paid(asked.result(), 1, "plan")
    assert_paid(service.chat(customer), 1, "plan")
    assert credits_left(service, customer) == (8, 0)


@rows("decisions.order_of_checks.14")
def test_a_plan_that_is_taken_away_serves_no_request_more(service: RunningService, backend: ScriptedBackend) -> None:
    """What is in flight is served from the plan that admitted it; then there is nothing to pay with."""
    customer = service.customer("basic")
    with held(backend, partial(service.chat, customer)) as (asked,):
        service.provisioning.set_account(customer.account_id, plan=None)
        assert_refused(service.chat(customer), 402, "upgrade_required")
    assert_paid(asked.result(), 1, "plan")


# The process and the database


def test_counters_and_revocations_survive_a_restart(
    store: Store, backend: ScriptedBackend, tmp_path: Path, clock: SetClock
) -> None:
    """Credits, windows and revoked keys are rows: after it everything reads as before."""
    with service_by(clock, tmp_path, backend.url, database_url=store.new_books(tmp_path)) as service:
        customer = service.customer("narrow", balance=7)
        revoked = service.another_key(customer)
        service.provisioning.revoke_key(revoked.key_id)
        for _ in range(2):
            service.chat(customer)
        before = read_usage(service, customer)
        assert service.stop() == 0
        service.start()
        assert read_usage(service, customer) == before
        assert statuses([service.chat(customer) for _ in range(2)]) == [200, 429]
        assert_refused(service.chat(revoked), 401, "invalid_api_key", counted=False)


def test_a_limit_is_not_multiplied_by_the_worker_count(
    store: Store, backend: ScriptedBackend, tmp_path: Path, clock: SetClock
) -> None:
    """Two processes share the windows and the credits: forty at once on 3 a minute, sixty at once on 3 credits."""
    with service_by(
        clock, tmp_path, backend.url, server="workers = 2", database_url=store.new_books(tmp_path)
    ) as service:
        limited, poor = service.customer("narrow"), service.customer("three")
        assert statuses(at_once([partial(service.chat, limited)] * 40)) == [200] * 3 + [429] * 37
        assert statuses(at_once([partial(service.chat, poor)] * 60)) == [200] * 3 + [402] * 57
        assert len(backend.received) == 6


@rows("spec.codes.system_stopped")
def test_a_malformed_request_keeps_no_slot(
    store: Store, backend: ScriptedBackend, tmp_path: Path, clock: SetClock
) -> None:
    """With room for two, any number of broken and abandoned ones leave room for two; a third is told to come back."""
    with service_by(
        clock, tmp_path, backend.url, server="max_in_flight = 2", database_url=store.new_books(tmp_path)
    ) as service:
        customer = service.customer()
        for body in (b"{", b"[]", b"\xff", b"{}", b'{"prompt": 1}', b'{"stream": true}'):
            assert service.post(customer, body).status in (400, 422)
        for taken in (7, 8, 9):
            with Wire(service.port) as wire:
                wire.send(chat_head(customer, f"Content-Length: {len(BODY)}") + BODY[:5])
            wait_until(partial(_has_taken, service, customer, taken))
        assert credits_left(service, customer) == (1_000_000, 0)
        with held(backend, *[partial(service.chat, customer)] * 2) as asked:
            refused = service.chat(customer)
            assert_refused(refused, 503, "system_stopped", counted=False)
        assert statuses([future.result() for future in asked]) == [200, 200]
        assert service.chat(customer).status == 200
        assert read_usage(service, customer)["api_credits"]["used"] == 3


@rows("spec.codes.system_stopped")
def test_a_database_that_takes_no_writes_serves_nothing(service: RunningService, backend: ScriptedBackend) -> None:
    """503 and not 401 for a good key, nothing asked of the model, nothing free; then all is as before."""
    customer = service.customer("three")
    with books_being_written(service):
        assert_refused(service.chat(customer), 503, "system_stopped", counted=False)
    assert backend.received == []
    assert credits_left(service, customer) == (3, 0)
    assert_paid(service.chat(customer), 1, "plan")


def _has_taken(service: RunningService, customer: Customer, number: int) -> bool:
    return places(service, customer).account == number
