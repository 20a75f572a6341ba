"""The official `openai` Python client, pointed at /api/v1."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support.backend import ScriptedBackend, replies
from tests.support.lazily import lazily
from tests.support.refusals import SCENARIOS, Scenario, met
from tests.support.service import RunningService

if TYPE_CHECKING:
    import openai
else:
    openai = lazily("openai")

TYPES = {
    400: "BadRequestError",
    401: "AuthenticationError",
    402: "APIStatusError",
    403: "PermissionDeniedError",
    404: "NotFoundError",
    413: "APIStatusError",
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


def _client(service: RunningService, api_key: str | None) -> openai.OpenAI:
    return openai.OpenAI(
        base_url=f"http://127.0.0.1:{service.port}/api/v1",
        api_key=api_key or "unused",
        max_retries=0,
    )


@pytest.fixture
def client(service: RunningService) -> Iterator[openai.OpenAI]:
    """A client with a good key."""
    with _client(service, service.customer().secret) as made:
        yield made


def test_a_completion(client: openai.OpenAI, backend: ScriptedBackend) -> None:
    """The client gets a completion, with our own members in its usage."""
    backend.behaviour = replies("Paris.", {"prompt_tokens": 5, "completion_tokens": 2})
    completion = client.chat.completions.create(model="test/two", messages=[{"role": "user", "content": "Capital?"}])
    assert completion.choices[0].message.content == "Paris."
    assert completion.choices[0].finish_reason == "stop"
    assert completion.model == "test/two"
    assert completion.usage is not None
    assert completion.usage.total_tokens == 7
    assert completion.usage.model_extra == {"credits": 2, "billing_source": "plan"}


def test_the_models(client: openai.OpenAI) -> None:
    """The client lists the models in the order of the catalogue."""
    assert [model.id for model in client.models.list()][:2] == ["test/one", "test/two"]


@pytest.mark.parametrize("model_id", ["test/one", "odd/a:b.c-1/x"])
def test_one_model(client: openai.OpenAI, model_id: str) -> None:
    """The client retrieves a model, also one whose id has slashes, a colon and a dot."""
    model = client.models.retrieve(model_id)
    assert model.id == model_id
    assert model.object == "model"


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.code)
def test_each_error_is_the_clients_own(service: RunningService, backend: ScriptedBackend, scenario: Scenario) -> None:
    """Each error of the table raises the client's type for its status, with the code, and the text whole."""
    with (
        met(scenario, service, backend) as call,
        _client(service, call.api_key) as client,
        pytest.raises(getattr(openai, TYPES[scenario.status])) as raised,
    ):
        client.chat.completions.create(
            model=call.model,
            messages=call.messages,
            stream=call.stream,
            extra_headers={} if call.api_key else {"Authorization": openai.Omit()},
        )
    assert raised.value.status_code == scenario.status
    assert raised.value.code == scenario.code
    assert str(raised.value).startswith(f"Error code: {scenario.status} - {scenario.text}")
    assert raised.value.request_id is not None
