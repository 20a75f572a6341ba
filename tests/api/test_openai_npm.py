"""The official `openai` npm client, pointed at /api/v1."""

import json
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support.backend import ScriptedBackend, replies
from tests.support.node import find_node
from tests.support.patience import PATIENCE_S
from tests.support.refusals import SCENARIOS, Call, Scenario, met
from tests.support.service import RunningService

CLIENT = Path(__file__).parents[1] / "npm/client.mjs"
TYPES = {
    400: "BadRequestError",
    401: "AuthenticationError",
    402: "APIError",
    403: "PermissionDeniedError",
    404: "NotFoundError",
    413: "APIError",
    422: "UnprocessableEntityError",
    429: "RateLimitError",
    502: "InternalServerError",
    503: "InternalServerError",
}
"""The client's own type for each status."""


@pytest.fixture(scope="module")
def service(service_by_clock: RunningService) -> RunningService:
    """A running service whose minute does not turn while a client starts."""
    return service_by_clock


def _run(service: RunningService, act: str, call: Call) -> Any:
    order = msgspec.to_builtins(call)
    order |= {"act": act, "baseURL": f"http://127.0.0.1:{service.port}/api/v1", "apiKey": order.pop("api_key")}
    run = subprocess.run(
        [find_node().program, CLIENT],
        input=json.dumps(order),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_a_completion(service: RunningService, backend: ScriptedBackend) -> None:
    """The client gets a completion."""
    backend.behaviour = replies("Paris.")
    answer = _run(service, "complete", Call(api_key=service.customer().secret, model="test/two"))
    assert answer["result"]["choices"][0]["message"] == {"role": "assistant", "content": "Paris."}
    assert answer["result"]["usage"]["credits"] == 2


def test_the_models(service: RunningService) -> None:
    """The client lists the models in the order of the catalogue."""
    answer = _run(service, "list", Call(api_key=service.customer().secret))
    assert [model["id"] for model in answer["result"]][:2] == ["test/one", "test/two"]


@pytest.mark.parametrize("model_id", ["test/one", "odd/a:b.c-1/x"])
def test_one_model(service: RunningService, model_id: str) -> None:
    """The client retrieves a model, also one whose id has slashes, a colon and a dot."""
    answer = _run(service, "retrieve", Call(api_key=service.customer().secret, model=model_id))
    assert answer["result"]["id"] == model_id


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.code)
def test_each_error_is_the_clients_own(service: RunningService, backend: ScriptedBackend, scenario: Scenario) -> None:
    """Each error of the table raises the client's type for its status, with the code, and the text whole."""
    with met(scenario, service, backend) as call:
        error = _run(service, "complete", call)
    assert (error["type"], error["status"], error["code"]) == (
        TYPES[scenario.status],
        scenario.status,
        scenario.code,
    )
    assert error["message"].startswith(f"{scenario.status} {scenario.text}")
    assert error["requestID"].startswith("req_")
