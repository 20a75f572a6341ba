"""The rows of the order of checks that are about paths, intake, windows, plans, models and credits, clause by clause.

What rows 2 to 5 say is held by test_authorization_header.py and test_authentication.py, rows 8 to 13 by
test_input*.py, and their order by test_order_of_checks_pairs.py.
"""

import time

import pytest

from tarazu.domain.accounts import AccountStatus
from tests.support.backend import ScriptedBackend, answers, stalls
from tests.support.envelopes import (
    RATE_LIMIT_HEADERS,
    assert_domain_error,
    assert_own_error,
    rate_limit_headers,
)
from tests.support.rows import rows
from tests.support.service import CHAT, MODELS, USAGE, Answer, RunningService
from tests.support.windows import NONE_TAKEN, ONE_TAKEN, Places, places, within_one_minute

pytestmark = pytest.mark.usefixtures("backend")

GET_ONLY = {"GET", "HEAD"}


@rows("decisions.order_of_checks.1")
@pytest.mark.parametrize(
    "path",
    [
        "/nothing",
        "/api",
        "/api/v1",
        "/api/v1/",
        "/api/v1/chat",
        "/api/v1/chat/completions/",
        "/api/v1/chat/completions/x",
        "/api/v1/usage/",
        "/api/v1/usage/x",
        "/api/v1/model",
        "/API/V1/usage",
        "//api/v1/usage",
        "/api/v1/%2e%2e/v1/none",
        "/api/v1/%ff",
        "/api/v1/%00",
        "/chat/completions",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_no_such_path(service: RunningService, method: str, path: str) -> None:
    """A path that is not there is a 404 for any method, with or without a key."""
    headers = {"Authorization": service.customer().bearer}
    assert_own_error(service.request(method, path, b"{}", headers), 404)
    answer = service.request(method, path, b"{}")
    assert_own_error(answer, 404)
    assert rate_limit_headers(answer) == set()


@rows("decisions.order_of_checks.1")
@pytest.mark.parametrize(
    ("path", "allowed"), [(CHAT, {"POST"}), (MODELS, GET_ONLY), (f"{MODELS}/test/one", GET_ONLY), (USAGE, GET_ONLY)]
)
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"])
def test_no_such_method(service: RunningService, method: str, path: str, allowed: set[str]) -> None:
    """A method that the path does not take is a 405, and Allow lists exactly those that it takes."""
    answer = service.request(method, path)
    if method in allowed:
        assert answer.status == 401
        return
    assert answer.status == 405
    assert set(answer.headers["allow"].split(", ")) == allowed
    if method != "HEAD":
        assert_own_error(answer, 405)


@rows("decisions.order_of_checks.4", "decisions.order_of_checks.5", "decisions.order_of_checks.6")
def test_what_the_operator_does_holds_from_the_next_request_on(service: RunningService) -> None:
    """A block, a stop and a revocation hold at once, and so does the end of a block and of a stop."""
    customer, act = service.customer(), service.provisioning
    assert service.chat(customer).status == 200
    act.set_account(customer.account_id, status=AccountStatus.BLOCKED)
    assert_domain_error(service.chat(customer), 403, "account_unavailable")
    act.set_account(customer.account_id, status=AccountStatus.ACTIVE)
    assert service.chat(customer).status == 200
    try:
        act.stop_intake()
        assert_domain_error(service.chat(customer), 503, "system_stopped")
    finally:
        act.resume_intake()
    assert service.chat(customer).status == 200
    act.revoke_key(customer.key_id)
    assert_domain_error(service.chat(customer), 401, "invalid_api_key")


@rows("decisions.order_of_checks.6")
@pytest.mark.parametrize("retry_after_s", [1, 90])
def test_stopped_intake(service: RunningService, backend: ScriptedBackend, retry_after_s: int) -> None:
    """While intake is stopped a call is 503, told to come back when the operator says, and takes nothing."""
    customer = service.customer()
    try:
        service.provisioning.stop_intake(retry_after_s=retry_after_s)
        answer = service.chat(customer)
    finally:
        service.provisioning.resume_intake()
    assert assert_domain_error(answer, 503, "system_stopped") == {}
    assert answer.headers["retry-after"] == str(retry_after_s)
    assert rate_limit_headers(answer) == set()
    assert places(service, customer) == NONE_TAKEN
    assert service.account(customer).used == 0
    assert backend.received == []


@rows("decisions.order_of_checks.7")
def test_the_window_of_the_account_is_full(service: RunningService) -> None:
    """A plan of 3 a minute serves 3 over all keys; the fourth is 429, and no place of its key is taken for it."""

    def scenario() -> tuple[list[int], Answer, Places]:
        first = service.customer("narrow")
        second = service.another_key(first)
        served = [service.chat(first).status for _ in range(3)]
        return served, service.chat(second), places(service, second)

    served, answer, taken = within_one_minute(scenario)
    assert served == [200, 200, 200]
    details = assert_domain_error(answer, 429, "rate_limit_exceeded")
    assert (details["scope"], details["limit_per_minute"]) == ("account", 3)
    assert taken == Places(account=3, key=0)
    assert rate_limit_headers(answer) == RATE_LIMIT_HEADERS


@rows("decisions.order_of_checks.7")
def test_the_window_of_the_key_is_full(service: RunningService) -> None:
    """A key of 1 a minute serves 1; the second is 429, no place of the account is taken, and other keys work on."""

    def scenario() -> tuple[int, Answer, Places, int]:
        customer = service.customer(limit_per_minute=1)
        first, second, taken = service.chat(customer), service.chat(customer), places(service, customer)
        return first.status, second, taken, service.chat(service.another_key(customer)).status

    first, answer, taken, other = within_one_minute(scenario)
    assert (first, other) == (200, 200)
    details = assert_domain_error(answer, 429, "rate_limit_exceeded")
    assert (details["scope"], details["limit_per_minute"]) == ("key", 1)
    assert taken == ONE_TAKEN


@rows("decisions.order_of_checks.14")
def test_neither_plan_nor_balance(service: RunningService, backend: ScriptedBackend) -> None:
    """Without a plan and with a balance of zero a call is 402 upgrade_required, even for a free model."""
    for model in ("test/one", "test/free", "no/such-model", None):
        customer = service.customer(plan=None)
        answer = service.chat(customer, model=model)
        assert assert_domain_error(answer, 402, "upgrade_required") == {}
        assert places(service, customer) == ONE_TAKEN
    assert backend.received == []


@rows("decisions.order_of_checks.14")
def test_a_plan_or_a_balance_is_enough(service: RunningService) -> None:
    """A plan without a balance passes, and so does a balance of 1 without a plan."""
    assert service.chat(service.customer("basic")).status == 200
    customer = service.customer(plan=None, balance=1)
    assert service.chat(customer).status == 200
    assert service.account(customer).balance == 0
    assert_domain_error(service.chat(customer), 402, "upgrade_required")


@rows("decisions.order_of_checks.15")
@pytest.mark.parametrize(
    ("plan", "key_models", "model"),
    [
        ("large", None, "no/such-model"),
        ("large", None, "backend-name"),
        ("large", ["test/one"], "test/two"),
        ("basic", None, "test/hasty"),
        ("basic", ["test/one", "test/hasty"], "test/hasty"),
        (None, None, "test/free"),
        (None, ["*"], "test/free"),
    ],
)
def test_a_model_that_does_not_exist_or_is_not_allowed(
    service: RunningService, backend: ScriptedBackend, plan: str | None, key_models: list[str] | None, model: str
) -> None:
    """An unknown model, or one outside the plan, payg or the key's list: 404, nothing paid, nobody asked."""
    customer = service.customer(plan, balance=5, models=key_models)
    answer = service.chat(customer, model=model)
    assert assert_domain_error(answer, 404, "model_not_found") == {}
    assert service.account(customer).used == 0
    assert service.account(customer).balance == 5
    assert places(service, customer) == ONE_TAKEN
    assert backend.received == []


@rows("decisions.order_of_checks.15")
@pytest.mark.parametrize(
    ("plan", "key_models", "model"),
    [
        ("large", None, "test/two"),
        ("large", ["*"], "test/two"),
        ("basic", None, "test/two"),
        ("basic", ["test/two"], "test/two"),
        (None, None, "test/two"),
        (None, ["test/two"], "test/two"),
    ],
)
def test_a_model_that_plan_and_key_allow(
    service: RunningService, plan: str | None, key_models: list[str] | None, model: str
) -> None:
    """A model that both the plan (or payg) and the key allow is used."""
    answer = service.chat(service.customer(plan, balance=5, models=key_models), model=model)
    assert (answer.status, answer.json["model"]) == (200, model)


@rows("decisions.order_of_checks.16")
@pytest.mark.parametrize(
    ("plan", "balance", "spent", "source"),
    [
        ("three", 0, 0, "plan"),
        ("three", 2, 1, "plan"),
        ("three", 2, 2, "api_balance"),
        ("three", 1, 2, None),
        ("three", 0, 3, None),
        (None, 2, 0, "api_balance"),
        (None, 1, 0, None),
    ],
)
def test_quota_or_balance_covers_the_cost(
    service: RunningService, backend: ScriptedBackend, plan: str | None, balance: int, spent: int, source: str | None
) -> None:
    """Two credits are taken whole from the quota, else whole from the balance, else the call is 402."""
    customer = service.customer(plan, balance=balance)
    for _ in range(spent):
        assert service.chat(customer).json["usage"]["billing_source"] == "plan"
    backend.reset()
    answer = service.chat(customer, model="test/two")
    account = service.account(customer)
    if source is None:
        assert_domain_error(answer, 402, "api_credits_exhausted")
        assert (account.used, account.balance) == (spent, balance)
        assert backend.received == []
    else:
        assert answer.json["usage"]["billing_source"] == source
        used, left = (spent + 2, balance) if source == "plan" else (spent, balance - 2)
        assert (account.used, account.balance) == (used, left)


@rows("decisions.order_of_checks.17")
def test_no_valid_reply(service: RunningService, backend: ScriptedBackend) -> None:
    """A backend that fails is a 502 of our own, and the credits are back."""
    backend.behaviour = answers(b'{"error": "broken"}', status=500)
    customer = service.customer("three")
    answer = service.chat(customer)
    assert assert_domain_error(answer, 502, "upstream_error") == {}
    assert service.get(USAGE, customer).json["api_credits"] == {"used": 0, "limit": 3, "remaining": 3}
    assert places(service, customer) == ONE_TAKEN


@rows("decisions.order_of_checks.17")
def test_no_reply_in_time(service: RunningService, backend: ScriptedBackend) -> None:
    """A backend that does not answer within the model's time-out is a 502 right then, and the credits are back."""
    backend.behaviour = stalls
    customer = service.customer("large")
    start_s = time.monotonic()
    answer = service.chat(customer, model="test/hasty")
    took_s = time.monotonic() - start_s
    assert_domain_error(answer, 502, "upstream_error")
    assert 0.3 <= took_s < 3
    assert service.get(USAGE, customer).json["api_credits"]["used"] == 0
    backend.wait_for_leaving()
