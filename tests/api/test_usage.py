"""GET /usage over HTTP: every member, as the books stand now, for the key that asks."""

from functools import partial

import pytest

from tests.support.answers import assert_paid, assert_refused, read_usage
from tests.support.at_once import held
from tests.support.backend import ScriptedBackend
from tests.support.rows import rows
from tests.support.service import USAGE, Customer, RunningService
from tests.support.set_clock import SetClock

FIRST_OF_MARCH = "2026-03-01T00:00:00Z"

pytestmark = [pytest.mark.both_stores, pytest.mark.usefixtures("noon")]


@pytest.fixture(scope="module")
def service(service_by_clock: RunningService) -> RunningService:
    """A running service that tells the time by the test's clock."""
    return service_by_clock


@rows(
    "spec.endpoints.4",
    "spec.usage.object",
    "spec.usage.plan",
    "spec.usage.period",
    "spec.usage.api_credits.used",
    "spec.usage.api_credits.limit",
    "spec.usage.api_credits.remaining",
    "spec.usage.pay_as_you_go.balance",
    "spec.usage.rate_limit.limit_per_minute",
    "spec.usage.rate_limit.remaining",
    "spec.usage.rate_limit.resets_at",
    "spec.usage.key.id",
    "spec.usage.key.name",
)
def test_the_whole_object(service: RunningService) -> None:
    """Without body and parameters, 200 and JSON: every member with its value, and no other."""
    customer = service.customer("basic", balance=7)
    service.chat(customer, model="test/two")
    answer = service.get(USAGE, customer)
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-request-id"]
    assert answer.json == {
        "object": "usage",
        "plan": "basic",
        "period": "2026-02",
        "api_credits": {"used": 2, "limit": 10, "remaining": 8},
        "pay_as_you_go": {"balance": 7},
        "rate_limit": {"limit_per_minute": 1000, "remaining": 999, "resets_at": "2026-02-10T12:01:00Z"},
        "key": {"id": customer.key_id, "name": "test key"},
    }


@rows("spec.endpoints.4")
def test_every_number_is_a_json_integer(service: RunningService) -> None:
    """No figure is a string, a fraction or a boolean."""
    usage = read_usage(service, service.customer("basic", balance=7))
    rate_limit = usage["rate_limit"]
    figures = [
        *usage["api_credits"].values(),
        usage["pay_as_you_go"]["balance"],
        rate_limit["limit_per_minute"],
        rate_limit["remaining"],
    ]
    assert {type(figure) for figure in figures} == {int}


@rows("spec.usage.plan", "decisions.rate_limit.2")
def test_the_plan_is_the_one_of_the_account_now(service: RunningService) -> None:
    """A change of plan shows at the next reading; without a plan it is `none`."""
    customer = service.customer("basic")
    plans = [read_usage(service, customer)["plan"]]
    for plan in ("large", None):
        service.provisioning.set_account(customer.account_id, plan=plan)
        plans.append(read_usage(service, customer)["plan"])
    assert plans == ["basic", "large", "none"]


@rows("decisions.rate_limit.2", "spec.usage.plan")
def test_without_plan_and_balance_usage_still_answers(service: RunningService) -> None:
    """The plan is `none`, every credit 0, and the limit that of the payg section."""
    usage = read_usage(service, service.customer(None))
    assert (usage["plan"], usage["api_credits"]) == ("none", {"used": 0, "limit": 0, "remaining": 0})
    assert usage["pay_as_you_go"] == {"balance": 0}
    assert usage["rate_limit"]["limit_per_minute"] == 500


@rows("decisions.rate_limit.2")
@pytest.mark.parametrize("name", ["none", "None"])
def test_no_plan_may_be_called_none(service: RunningService, name: str) -> None:
    """Such a configuration is refused, and the reason given."""
    config = service.folder / "none.toml"
    config.write_text(service.config.read_text() + f"[plans.{name}]\nmonthly_credits = 1\n")
    done = service.run("check", config=config)
    assert done.returncode == 1
    assert f"plans.{name}" in done.stdout + done.stderr
    assert "no plan may be called" in done.stdout + done.stderr


@rows("spec.usage.api_credits.used", "spec.usage.period")
def test_used_is_of_the_current_period(service: RunningService, clock: SetClock) -> None:
    """When the month turns, it is 0 of the new period before the first call too."""
    customer = service.customer("basic")
    service.chat(customer, model="test/two")
    assert _credits(service, customer) == (2, 10, 8)
    clock.set(FIRST_OF_MARCH)
    assert read_usage(service, customer)["period"] == "2026-03"
    assert _credits(service, customer) == (0, 10, 10)


@rows("spec.usage.api_credits.used", "spec.usage.api_credits.remaining")
def test_credits_of_running_requests_are_used_already(service: RunningService, backend: ScriptedBackend) -> None:
    """What is held is no longer there to spend."""
    customer = service.customer("basic")
    with held(backend, partial(service.chat, customer, model="test/two")) as (asked,):
        assert _credits(service, customer) == (2, 10, 8)
    assert_paid(asked.result(), 2, "plan")
    assert _credits(service, customer) == (2, 10, 8)


@rows("spec.usage.api_credits.used", "spec.usage.pay_as_you_go.balance")
def test_what_the_balance_pays_is_not_used_quota(service: RunningService) -> None:
    """Quota and balance are counted apart; the balance is used after the quota is spent."""
    customer = service.customer("three", balance=10)
    for _ in range(5):
        service.chat(customer)
    usage = read_usage(service, customer)
    assert usage["api_credits"] == {"used": 3, "limit": 3, "remaining": 0}
    assert usage["pay_as_you_go"] == {"balance": 8}


@rows("spec.usage.pay_as_you_go.balance")
def test_a_top_up_shows_at_once(service: RunningService) -> None:
    """At the next reading."""
    customer = service.customer("three", balance=10)
    service.provisioning.add_credit(customer.account_id, 5, reference=f"more for {customer.account_id}")
    assert read_usage(service, customer)["pay_as_you_go"] == {"balance": 15}


@rows("spec.usage.api_credits.remaining", "spec.usage.api_credits.limit", "decisions.rate_limit.2")
def test_remaining_quota_is_not_negative_after_a_change_to_a_smaller_plan(service: RunningService) -> None:
    """4 used of 3: nothing remains, not minus one; and nothing more is served from the plan."""
    customer = service.customer("basic")
    for _ in range(2):
        service.chat(customer, model="test/two")
    service.provisioning.set_account(customer.account_id, plan="three")
    assert _credits(service, customer) == (4, 3, 0)
    details = {"period": "2026-02", "used": 4, "limit": 3, "cost": 1, "api_credit_balance": 0}
    assert_refused(service.chat(customer), 402, "api_credits_exhausted", details)


@rows("spec.usage.rate_limit.remaining", "decisions.rate_limit.2")
def test_remaining_requests_are_not_negative_after_a_change_to_a_smaller_plan(service: RunningService) -> None:
    """5 taken of 3: 0 remain, in GET /usage and in the headers."""
    customer = service.customer("large")
    for _ in range(5):
        service.chat(customer)
    service.provisioning.set_account(customer.account_id, plan="narrow")
    assert _rate_limit(service, customer) == (3, 0)
    refused = service.chat(customer)
    assert (refused.status, refused.headers["x-ratelimit-remaining"]) == (429, "0")


@rows("spec.usage.rate_limit.remaining", "spec.usage.rate_limit.limit_per_minute")
def test_remaining_requests_are_what_the_headers_say(service: RunningService) -> None:
    """Also beyond the limit: refused requests do not count it down further."""
    customer = service.customer("narrow")
    assert _rate_limit(service, customer) == (3, 3)
    for expected in (2, 1, 0, 0, 0):
        assert service.chat(customer).headers["x-ratelimit-remaining"] == str(expected)
        assert _rate_limit(service, customer) == (3, expected)


@rows("spec.usage.rate_limit.resets_at")
def test_the_window_resets_at_the_end_of_the_clock_minute(service: RunningService, clock: SetClock) -> None:
    """In ISO 8601; after it the window is whole."""
    customer = service.customer("narrow")
    service.chat(customer)
    clock.set("2026-02-10T12:00:59.999Z")
    assert read_usage(service, customer)["rate_limit"] == {
        "limit_per_minute": 3,
        "remaining": 2,
        "resets_at": "2026-02-10T12:01:00Z",
    }
    clock.set("2026-02-10T12:01:00Z")
    assert read_usage(service, customer)["rate_limit"] == {
        "limit_per_minute": 3,
        "remaining": 3,
        "resets_at": "2026-02-10T12:02:00Z",
    }


@rows("decisions.rate_limit.2", "spec.usage.rate_limit.limit_per_minute")
def test_the_limit_that_binds_tighter_now_is_shown(service: RunningService) -> None:
    """The key's, until other keys have left the account less room than it; each key is shown its own."""
    customer = service.customer("narrow", limit_per_minute=2)
    other = service.another_key(customer)
    assert _rate_limit(service, customer) == (2, 2)
    assert _rate_limit(service, other) == (3, 3)
    service.chat(other)
    service.chat(other)
    assert _rate_limit(service, customer) == (3, 1)
    assert _rate_limit(service, other) == (3, 1)


@rows("decisions.rate_limit.2")
def test_a_limit_of_the_key_that_is_wider_is_not_shown(service: RunningService) -> None:
    """The account's binds."""
    assert _rate_limit(service, service.customer("narrow", limit_per_minute=2_000)) == (3, 3)


@rows("spec.usage.key.id", "spec.usage.key.name")
def test_the_key_is_the_one_that_asks(service: RunningService) -> None:
    """Two keys of one account see the same credits, each with its own id and name."""
    customer = service.customer("basic")
    other = service.another_key(customer)
    service.chat(customer)
    seen = [read_usage(service, key) for key in (customer, other)]
    assert [usage["key"] for usage in seen] == [
        {"id": customer.key_id, "name": "test key"},
        {"id": other.key_id, "name": "another key"},
    ]
    assert seen[0]["api_credits"] == seen[1]["api_credits"] == {"used": 1, "limit": 10, "remaining": 9}


@rows("spec.endpoints.4")
def test_usage_answers_when_nothing_else_is_to_be_had(service: RunningService) -> None:
    """With no credits left, a full window and the intake stopped, an account can still see why."""
    customer = service.customer("three", limit_per_minute=3)
    for _ in range(3):
        service.chat(customer)
    service.provisioning.stop_intake()
    try:
        usage = read_usage(service, customer)
    finally:
        service.provisioning.resume_intake()
    assert usage["api_credits"]["remaining"] == 0
    assert usage["rate_limit"]["remaining"] == 0


def _credits(service: RunningService, customer: Customer) -> tuple[int, int, int]:
    shown = read_usage(service, customer)["api_credits"]
    return shown["used"], shown["limit"], shown["remaining"]


def _rate_limit(service: RunningService, customer: Customer) -> tuple[int, int]:
    shown = read_usage(service, customer)["rate_limit"]
    return shown["limit_per_minute"], shown["remaining"]
