"""GET /models tells whether a model can be had: not while all its backends rest, and not when all are disabled."""

import pytest

from tests.support.answers import assert_refused, credits_left
from tests.support.at_once import wait_until
from tests.support.backend import ScriptedBackend, answers
from tests.support.rows import rows
from tests.support.service import CATALOGUE, MODELS, Customer, RunningService

pytestmark = pytest.mark.both_stores

RESTING, HALF, DISABLED = "test/resting", "test/half", "test/disabled"
POOLS = """
[models."test/resting"]
credits = 1
timeout_s = 5
[[models."test/resting".backends]]
kind = "openai"
url = "BACKEND"
model = "first"
[[models."test/resting".backends]]
kind = "openai"
url = "BACKEND"
model = "second"
priority = 1

[models."test/half"]
credits = 1
timeout_s = 5
[[models."test/half".backends]]
kind = "openai"
url = "BACKEND"
model = "off"
enabled = false
[[models."test/half".backends]]
kind = "openai"
url = "BACKEND"
model = "on"

[models."test/disabled"]
credits = 1
timeout_s = 5
[[models."test/disabled".backends]]
kind = "openai"
url = "BACKEND"
model = "off"
enabled = false
"""


@pytest.fixture(scope="module")
def catalogue() -> str:
    """Sell models with several backends, some of them disabled."""
    return CATALOGUE + POOLS


def status(service: RunningService, customer: Customer, model_id: str) -> tuple[bool, str]:
    """Tell what GET /models says of a model, which is always in the list."""
    (found,) = [model for model in service.get(MODELS, customer).json["data"] if model["id"] == model_id]
    return found["available"], found["status"]


def status_alone(service: RunningService, customer: Customer, model_id: str) -> tuple[bool, str]:
    """Tell what GET /models/{model_id} says of a model."""
    found = service.get(f"{MODELS}/{model_id}", customer).json
    return found["available"], found["status"]


@rows("spec.model.available", "spec.model.status", "decisions.models.1")
def test_a_model_is_unavailable_while_all_its_backends_rest(service: RunningService, backend: ScriptedBackend) -> None:
    """And available again when one of them may be asked, without anybody having asked it."""
    customer = service.customer()
    assert status(service, customer, RESTING) == (True, "available")
    backend.behaviour = answers(b"no", status=500)

    def is_unavailable() -> bool:
        service.chat(customer, model=RESTING)  # each try that fails lengthens the rests
        # A rest may be over between two looks.
        return {look(service, customer, RESTING) for look in (status, status_alone)} == {(False, "unavailable")}

    wait_until(is_unavailable)
    assert status(service, customer, HALF) == (True, "available")
    backend.reset()
    wait_until(lambda: status(service, customer, RESTING) == (True, "available"))
    assert status_alone(service, customer, RESTING) == (True, "available")
    assert backend.received == []
    assert service.chat(customer, model=RESTING).status == 200


@rows("spec.model.status", "decisions.models.1", "decisions.order_of_checks.17")
def test_a_model_without_an_enabled_backend_is_unavailable(service: RunningService, backend: ScriptedBackend) -> None:
    """It is in the list all the same; to ask it is 502, costs nothing, and nobody is asked."""
    customer = service.customer()
    assert status(service, customer, DISABLED) == (False, "unavailable")
    assert status_alone(service, customer, DISABLED) == (False, "unavailable")
    before = credits_left(service, customer)
    assert_refused(service.chat(customer, model=DISABLED), 502, "upstream_error")
    assert credits_left(service, customer) == before
    assert backend.received == []


@rows("decisions.models.1")
def test_a_disabled_backend_is_never_asked(service: RunningService, backend: ScriptedBackend) -> None:
    """The others of its model are, for all requests."""
    customer = service.customer()
    assert status(service, customer, HALF) == (True, "available")
    assert {service.chat(customer, model=HALF).status for _ in range(6)} == {200}
    assert {received.body["model"] for received in backend.received} == {"on"}
