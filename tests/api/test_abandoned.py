"""Requests without a reply by the caller's own doing: free up to the bound of an hour, then charged, and told why."""

import json

import pytest

from tests.support.answers import credits_left, look
from tests.support.at_once import wait_until
from tests.support.backend import ScriptedBackend, answers, stalls
from tests.support.envelopes import assert_domain_error
from tests.support.rows import rows
from tests.support.service import CATALOGUE, Customer, RunningService
from tests.support.set_clock import SetClock
from tests.support.wire import Wire, chat_head

pytestmark = pytest.mark.usefixtures("noon")

BODY = json.dumps({"model": "test/two", "prompt": "Hello"}).encode()
FREE = [("released", "abandoned")] * 2
SHORT = """
[models."test/short"]
credits = 1
timeout_s = 0.2
[[models."test/short".backends]]
kind = "openai"
url = "BACKEND"
model = "short"
"""


@pytest.fixture(scope="module")
def catalogue() -> str:
    """Two such requests are free in an hour; one model runs out of time at once."""
    return CATALOGUE.replace("[billing]\n", "[billing]\nabandoned_per_hour = 2\n") + SHORT


@pytest.fixture(scope="module")
def service(service_by_clock: RunningService) -> RunningService:
    """A service by a clock that stands still."""
    return service_by_clock


def outcomes(service: RunningService, customer: Customer) -> list[tuple[str, str | None]]:
    """List state and reason of the customer's requests that have ended, in the order of the words."""
    query = (
        "SELECT state, reason FROM requests WHERE account_id = :id AND state <> 'held'"
        " ORDER BY state, coalesce(reason, '')"
    )
    return [(state, reason) for state, reason in look(service, query, id=customer.account_id)]


def leave(service: RunningService, backend: ScriptedBackend, customer: Customer, *lines: str) -> None:
    """Send a request, and leave while the backend works on it."""
    before = len(outcomes(service, customer))
    backend.behaviour = stalls
    with Wire(service.port) as wire:
        wire.send(chat_head(customer, f"Content-Length: {len(BODY)}", *lines) + BODY)
        backend.wait_for_requests(1)
    backend.wait_for_leaving()
    wait_until(lambda: len(outcomes(service, customer)) > before)


@rows("decisions.shares_and_time_outs.4", "decisions.reply.4")
def test_who_leaves_too_often_pays(service: RunningService, backend: ScriptedBackend, clock: SetClock) -> None:
    """Two are free, the third is charged its price; in the next hour two are free again."""
    customer = service.customer("basic")
    for _ in range(3):
        leave(service, backend, customer)
    assert outcomes(service, customer) == [("charged", "abandoned"), *FREE]
    assert credits_left(service, customer) == (8, 0)
    clock.set("2026-02-10T13:00:00Z")
    leave(service, backend, customer)
    assert outcomes(service, customer) == [("charged", "abandoned"), *FREE, ("released", "abandoned")]
    assert credits_left(service, customer) == (8, 0)


@rows("decisions.shares_and_time_outs.4")
def test_who_runs_out_of_time_too_often_pays(service: RunningService, backend: ScriptedBackend) -> None:
    """However short its reply would be; a backend that fails is free without end."""
    customer = service.customer("large")
    backend.behaviour = stalls
    settings = (16, 16, 16, None, None, None)
    failed = [service.chat(customer, model="test/short", max_tokens=max_tokens) for max_tokens in settings]
    for answer in failed:
        assert_domain_error(answer, 502, "upstream_error")
    backend.behaviour = answers(b"no", status=400)
    for _ in range(3):
        assert_domain_error(service.chat(customer, model="test/short"), 502, "upstream_error")
    wait_until(lambda: len(outcomes(service, customer)) == 9)
    assert outcomes(service, customer) == [
        *[("charged", "timed_out")] * 4,
        *[("released", None)] * 3,
        *[("released", "timed_out")] * 2,
    ]
    assert service.account(customer).used == 4
    told = service.json("request", failed[-1].headers["x-request-id"])
    assert (told["state"], told["reason"]) == ("charged", "timed_out")


@rows("decisions.shares_and_time_outs.4")
def test_the_idempotency_key_of_one_that_was_charged_is_free(service: RunningService, backend: ScriptedBackend) -> None:
    """The next request with it is asked, and its reply is the one that is kept."""
    customer = service.customer("large")
    for _ in range(3):
        leave(service, backend, customer, "Idempotency-Key: again")
    backend.reset()
    answer = service.post(customer, BODY, idempotency_key="again")
    assert answer.status == 200
    assert service.post(customer, BODY, idempotency_key="again").json == answer.json
    assert outcomes(service, customer) == [("charged", None), ("charged", "abandoned"), *FREE]
