"""Minute windows over HTTP: exact, shared by an account's keys, and never given twice."""

from typing import Any

import pytest

from tarazu.domain.accounts import AccountStatus
from tests.support.answers import assert_refused, credits_left, read_usage
from tests.support.backend import ScriptedBackend, answers
from tests.support.envelopes import RATE_LIMIT_HEADERS, rate_limit_headers
from tests.support.odd_keys import mistyped
from tests.support.rows import rows
from tests.support.service import CATALOGUE, MODELS, USAGE, Answer, Customer, RunningService
from tests.support.set_clock import SetClock
from tests.support.windows import Places, places

WITH_SMALL_LIMITS = CATALOGUE.replace("requests_per_minute = 500\n", "requests_per_minute = 2\n") + (
    "[plans.once]\nmonthly_credits = 1000\nrequests_per_minute = 1\n"
)
END_OF_NOON = "2026-02-10T12:00:59.999Z"
NEXT_MINUTE = "2026-02-10T12:01:00Z"
RESETS_AT = "2026-02-10T12:01:00Z"

pytestmark = [pytest.mark.both_stores, pytest.mark.usefixtures("noon")]


@pytest.fixture(scope="module")
def catalogue() -> str:
    """Plans and keys of small limits."""
    return WITH_SMALL_LIMITS


@pytest.fixture(scope="module")
def service(service_by_clock: RunningService) -> RunningService:
    """A running service whose minutes turn when the test says so."""
    return service_by_clock


@rows("decisions.rate_limit.1", "decisions.rate_limit.3", "spec.codes.rate_limit_exceeded", "spec.codes.rule_1")
def test_a_limit_of_one_serves_exactly_one(service: RunningService, backend: ScriptedBackend) -> None:
    """The first is served and shows that none is left; the second is told when to come back, and costs nothing."""
    customer = service.customer("once")
    first, second = service.chat(customer), service.chat(customer)
    assert first.status == 200
    assert _limit_shown(first) == (1, 0, 60)
    assert_refused(second, 429, "rate_limit_exceeded", _details("account", 1))
    assert _limit_shown(second) == (1, 0, 60)
    assert second.headers["retry-after"] == "60"
    assert len(backend.received) == 1
    assert credits_left(service, customer) == (999, 0)


@rows("decisions.rate_limit.1", "spec.limits.requests_per_minute")
def test_remaining_counts_down_to_nought(service: RunningService) -> None:
    """Of three places 2, 1 and 0 are left, and it stays 0 however many more come."""
    customer = service.customer("narrow")
    shown = [_limit_shown(service.chat(customer)) for _ in range(5)]
    assert shown == [(3, 2, 60), (3, 1, 60), (3, 0, 60), (3, 0, 60), (3, 0, 60)]


@rows("decisions.rate_limit.1", "spec.codes.rule_1")
def test_windows_turn_with_the_clock_minute(service: RunningService, clock: SetClock) -> None:
    """What is full in the last instant of a minute is empty in the first of the next, however late it was filled."""
    customer = service.customer("once")
    clock.set(END_OF_NOON)
    assert _limit_shown(service.chat(customer)) == (1, 0, 1)
    refused = service.chat(customer)
    assert_refused(refused, 429, "rate_limit_exceeded", _details("account", 1))
    assert refused.headers["retry-after"] == "1"
    clock.set(NEXT_MINUTE)
    answer = service.chat(customer)
    assert answer.status == 200
    assert _limit_shown(answer) == (1, 0, 60)


@rows("decisions.rate_limit.1", "spec.codes.rule_1")
def test_the_time_to_wait_is_rounded_up(service: RunningService, clock: SetClock) -> None:
    """Who comes back after Retry-After is not too early."""
    customer = service.customer("once")
    clock.set("2026-02-10T12:00:30.001Z")
    service.chat(customer)
    refused = service.chat(customer)
    assert (refused.status, refused.headers["retry-after"]) == (429, "30")
    clock.advance(30)
    assert service.chat(customer).status == 200


@rows("spec.limits.requests_per_minute", "spec.codes.rate_limit_exceeded")
@pytest.mark.parametrize("scope", ["account", "key"])
def test_the_limit_is_what_usage_says(service: RunningService, clock: SetClock, scope: str) -> None:
    """As many as limit_per_minute are served, of the account or the key; at resets_at there is room again."""
    customer = service.customer("narrow") if scope == "account" else service.customer(limit_per_minute=4)
    told = read_usage(service, customer)["rate_limit"]
    served = [service.chat(customer).status for _ in range(told["limit_per_minute"] + 2)]
    assert served == [200] * told["limit_per_minute"] + [429] * 2
    clock.set(told["resets_at"])
    assert service.chat(customer).status == 200


@rows("decisions.rate_limit.1", "spec.limits.requests_per_minute")
def test_the_limit_of_an_account_is_shared_by_its_keys(service: RunningService) -> None:
    """A second key brings no second limit; another account has its own."""
    customer = service.customer("narrow")
    keys = [customer, service.another_key(customer), service.another_key(customer)]
    for key in keys:
        assert service.chat(key).status == 200
    for key in keys:
        assert_refused(service.chat(key), 429, "rate_limit_exceeded", _details("account", 3))
    assert service.chat(service.customer("narrow")).status == 200


@rows("decisions.rate_limit.1", "decisions.rate_limit.3", "spec.codes.rate_limit_exceeded")
def test_a_limit_of_a_key_comes_on_top(service: RunningService) -> None:
    """It stops this key alone, and its refused request takes no place of the account: both are taken or neither."""
    customer = service.customer("narrow", limit_per_minute=1)
    other = service.another_key(customer)
    assert _limit_shown(service.chat(customer)) == (1, 0, 60)
    for _ in range(3):
        assert_refused(service.chat(customer), 429, "rate_limit_exceeded", _details("key", 1))
    assert _limit_shown(service.chat(other)) == (3, 1, 60)
    assert service.chat(other).status == 200
    assert_refused(service.chat(other), 429, "rate_limit_exceeded", _details("account", 3))


@rows("decisions.rate_limit.1")
def test_a_full_account_takes_no_place_of_the_key(service: RunningService) -> None:
    """Both are taken or neither: the key's places are all there when the account has room again."""
    customer = service.customer("narrow")
    key = service.another_key(customer, limit_per_minute=2)
    for _ in range(3):
        service.chat(customer)
    for _ in range(3):
        assert_refused(service.chat(key), 429, "rate_limit_exceeded", _details("account", 3))
    assert places(service, key) == Places(account=3, key=0)
    service.provisioning.set_account(customer.account_id, plan="large")
    assert [service.chat(key).status for _ in range(3)] == [200, 200, 429]


@rows("decisions.rate_limit.1")
def test_a_limit_of_a_key_does_not_widen_that_of_the_account(service: RunningService) -> None:
    """A key with 100 a minute of an account with 3 has 3."""
    customer = service.customer("narrow", limit_per_minute=100)
    assert [service.chat(customer).status for _ in range(4)] == [200, 200, 200, 429]


@rows("decisions.rate_limit.1", "decisions.models.2")
def test_without_a_plan_the_limit_is_that_of_the_payg_section(service: RunningService) -> None:
    """2 a minute here, shared by the account's keys as well."""
    customer = service.customer(None, balance=9)
    assert _limit_shown(service.chat(customer)) == (2, 1, 60)
    assert service.chat(service.another_key(customer)).status == 200
    assert_refused(service.chat(customer), 429, "rate_limit_exceeded", _details("account", 2))
    assert credits_left(service, customer) == (0, 7)


@rows("decisions.rate_limit.1")
def test_another_plan_brings_its_limit_at_once(service: RunningService) -> None:
    """What was taken in this minute counts on."""
    customer = service.customer("once")
    assert [service.chat(customer).status for _ in range(2)] == [200, 429]
    service.provisioning.set_account(customer.account_id, plan="narrow")
    assert [service.chat(customer).status for _ in range(3)] == [200, 200, 429]


@rows("decisions.rate_limit.1")
def test_get_requests_never_count_and_never_answer_429(service: RunningService) -> None:
    """Twenty of them leave the window as it is; with a full window they answer as ever."""
    customer = service.customer("once", limit_per_minute=1)
    paths = (USAGE, MODELS, f"{MODELS}/test/one", f"{MODELS}/no/such-model")
    before = [service.get(path, customer) for path in paths * 5]
    assert _limit_shown(service.chat(customer)) == (1, 0, 60)
    assert service.chat(customer).status == 429
    after = [service.get(path, customer) for path in paths]
    assert [answer.status for answer in before] == [200, 200, 200, 404] * 5
    assert [answer.status for answer in after] == [200, 200, 200, 404]
    assert {name for answer in (*before, *after) for name in rate_limit_headers(answer)} == set()
    assert places(service, customer) == Places(account=1, key=1)


@rows("decisions.rate_limit.1")
def test_requests_that_a_later_step_refuses_have_taken_their_place(service: RunningService) -> None:
    """A place is a place, whatever comes of it, and the answers to them tell what is left."""
    customer = service.customer("narrow")
    wrong_type = service.request("POST", "/api/v1/chat/completions", "{}", {"Authorization": customer.bearer})
    no_json, no_input = service.post(customer, b"{"), service.post(customer, {})
    assert [answer.status for answer in (wrong_type, no_json, no_input)] == [415, 400, 422]
    assert [_limit_shown(answer) for answer in (wrong_type, no_json, no_input)] == [(3, 2, 60), (3, 1, 60), (3, 0, 60)]
    assert_refused(service.chat(customer), 429, "rate_limit_exceeded", _details("account", 3))


@rows("decisions.rate_limit.1")
def test_a_request_whose_model_fails_has_taken_its_place(service: RunningService, backend: ScriptedBackend) -> None:
    """Its credits come back, its place does not."""
    backend.behaviour = answers(b"broken", status=500)
    customer = service.customer("once")
    failed = service.chat(customer)
    assert failed.status == 502
    assert _limit_shown(failed) == (1, 0, 60)
    assert service.chat(customer).status == 429
    assert credits_left(service, customer) == (1_000, 0)


@rows("decisions.rate_limit.1")
def test_requests_that_an_earlier_step_refuses_take_no_place(service: RunningService) -> None:
    """A mistyped key, a blocked account and a stopped intake leave the windows alone, and show none."""
    customer = service.customer("once")
    refused = [service.chat(Customer(customer.account_id, customer.key_id, mistyped(customer.secret)))]
    service.provisioning.set_account(customer.account_id, status=AccountStatus.BLOCKED)
    refused.append(service.chat(customer))
    service.provisioning.set_account(customer.account_id, status=AccountStatus.ACTIVE)
    service.provisioning.stop_intake()
    try:
        refused.append(service.chat(customer))
    finally:
        service.provisioning.resume_intake()
    assert [answer.status for answer in refused] == [401, 403, 503]
    assert [rate_limit_headers(answer) for answer in refused] == [set()] * 3
    assert service.chat(customer).status == 200


@rows("spec.codes.rate_limit_exceeded")
def test_a_full_window_answers_before_the_body_is_judged(service: RunningService) -> None:
    """Nonsense beyond the limit is 429 as well: step 7 comes before step 8."""
    customer = service.customer("once")
    service.chat(customer)
    for body in (b"{", b"[]", b'{"stream": true}'):
        assert_refused(service.post(customer, body), 429, "rate_limit_exceeded", _details("account", 1))


def _details(scope: str, limit_per_minute: int) -> dict[str, Any]:
    return {"scope": scope, "limit_per_minute": limit_per_minute, "resets_at": RESETS_AT}


def _limit_shown(answer: Answer) -> tuple[int, int, int]:
    """Read limit, remaining and reset from the headers."""
    assert rate_limit_headers(answer) == RATE_LIMIT_HEADERS
    limit, remaining, reset = (int(answer.headers[f"x-ratelimit-{name}"]) for name in ("limit", "remaining", "reset"))
    return limit, remaining, reset
