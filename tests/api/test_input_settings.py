"""Generation settings and unknown members of the body."""

from typing import Any

import pytest

from tests.support.backend import ScriptedBackend
from tests.support.effects import assert_took_only_a_place
from tests.support.envelopes import assert_own_error
from tests.support.rows import rows
from tests.support.service import CATALOGUE, RunningService

pytestmark = pytest.mark.usefixtures("backend")

CEILING = 16
SHORT_MODEL = f"""
[models."test/short"]
credits = 1
max_output_tokens = {CEILING}
timeout_s = 5
[[models."test/short".backends]]
kind = "openai"
url = "BACKEND"
model = "short"
"""


@pytest.fixture(scope="module")
def catalogue() -> str:
    """A model with a ceiling on its output besides."""
    return CATALOGUE + SHORT_MODEL


def passed_on(service: RunningService, backend: ScriptedBackend, **members: Any) -> dict[str, Any]:
    """Send members that must be served; answer with what the backend got beside model, messages and stream."""
    backend.received.clear()
    answer = service.chat(service.customer(), **members)
    assert answer.status == 200, answer
    (received,) = backend.received
    assert received.body["messages"] == [{"role": "user", "content": "Hello"}]
    return {name: value for name, value in received.body.items() if name not in {"model", "messages", "stream"}}


@rows("decisions.input.5")
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("temperature", [0, 0.0, 1e-9, 0.7, 1, 2, 2.0]),
        ("top_p", [0, 0.0, 0.5, 1, 1.0]),
        ("max_tokens", [1, 2, 4_096, 2_147_483_647]),
        ("seed", [0, 1, -1, 42, 2**63 - 1]),
        ("presence_penalty", [-2, -0.5, 0, 1.5, 2.0]),
        ("frequency_penalty", [-2.0, -0.5, 0, 1.5, 2]),
    ],
)
def test_a_valid_setting(service: RunningService, backend: ScriptedBackend, name: str, values: list[Any]) -> None:
    """It is passed to the backend as it is, to both ends of its range."""
    for value in values:
        assert passed_on(service, backend, **{name: value}) == {name: value}


@rows("decisions.input.5")
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("temperature", [-0.01, 2.01, -1, 3, 1e300, "1", "", True, False, [1], {}]),
        ("top_p", [-0.01, 1.01, 2, "0.5", True, [], {}]),
        ("max_tokens", [0, -1, 1.5, 0.5, "5", "", True, False, [5], {}]),
        ("max_completion_tokens", [0, -1, 1.5, 0.5, "5", "", True, False, [5], {}]),
        ("stop", [5, 0, True, False, {}, {"0": "x"}, [5], ["x", None], ["x", 5], [["x"]], ["a", "b", "c", "d", "e"]]),
        ("stop", ["x" * 257, ["x" * 257], ["a", "b" * 257]]),
        ("seed", [1.5, "1", "", True, False, [], {}]),
        ("presence_penalty", [-2.01, 2.01, 3, "1", True, [], {}]),
        ("frequency_penalty", [-2.01, 2.01, -3, "1", False, [], {}]),
    ],
)
def test_an_invalid_setting(service: RunningService, backend: ScriptedBackend, name: str, values: list[Any]) -> None:
    """Outside its range or of another type it is 400, the message names it, and the backend is not asked."""
    for value in values:
        customer = service.customer()
        answer = service.chat(customer, **{name: value})
        assert name in assert_own_error(answer, 400)
        assert_took_only_a_place(service, backend, customer, answer)


@rows("decisions.input.5")
def test_null_counts_as_omitted(service: RunningService, backend: ScriptedBackend) -> None:
    """Settings of null are not passed on, like settings that were not sent."""
    names = ("temperature", "top_p", "max_tokens", "max_completion_tokens", "stop", "seed")
    nulls = dict.fromkeys((*names, "presence_penalty", "frequency_penalty"))
    assert passed_on(service, backend, **nulls) == {}
    assert passed_on(service, backend) == {}


@rows("decisions.input.5")
def test_all_settings_together(service: RunningService, backend: ScriptedBackend) -> None:
    """They are passed on together."""
    settings = {
        "temperature": 0.5,
        "top_p": 0.9,
        "max_tokens": 7,
        "stop": ["a"],
        "seed": 3,
        "presence_penalty": 1,
        "frequency_penalty": -1,
    }
    assert passed_on(service, backend, **settings) == settings


@rows("decisions.input.5")
@pytest.mark.parametrize("stop", ["END", ["END"], ["a", "b"], ["a", "b", "c", "\n\0سلام"], ["\u20ac" * 256]], ids=repr)
def test_stop(service: RunningService, backend: ScriptedBackend, stop: str | list[str]) -> None:
    """A string or up to four reach the backend, untrimmed and in their order."""
    as_list = [stop] if isinstance(stop, str) else stop
    assert passed_on(service, backend, stop=stop) == {"stop": as_list}


@rows("decisions.input.5")
def test_max_completion_tokens(service: RunningService, backend: ScriptedBackend) -> None:
    """The newer name of max_tokens means the same."""
    assert passed_on(service, backend, max_completion_tokens=7) == {"max_tokens": 7}
    assert passed_on(service, backend, max_completion_tokens=7, max_tokens=None) == {"max_tokens": 7}
    assert passed_on(service, backend, max_completion_tokens=None, max_tokens=7) == {"max_tokens": 7}


@rows("decisions.input.5")
@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
@pytest.mark.parametrize(
    ("asked", "got"), [(1, 1), (CEILING - 1, 15), (CEILING, 16), (CEILING + 1, 16), (10**6, 16), (None, 16)]
)
def test_the_ceiling_of_the_model(
    service: RunningService, backend: ScriptedBackend, name: str, asked: int | None, got: int
) -> None:
    """The model's own ceiling caps what is asked, and stands where nothing is."""
    assert passed_on(service, backend, model="test/short", **{name: asked}) == {"max_tokens": got}


@rows("decisions.added_by_this_project.1")
@pytest.mark.parametrize(
    ("name", "value", "got"),
    [
        ("max_tokens", 5.0, 5),
        ("max_tokens", 2_147_483_648, 2_147_483_647),
        ("max_tokens", 10**30, 2_147_483_647),
        ("max_tokens", 1e300, 2_147_483_647),
        ("seed", 5.0, 5),
        ("seed", -5.0, -5),
    ],
)
def test_integers_as_json_has_them(
    service: RunningService, backend: ScriptedBackend, name: str, value: float, got: int
) -> None:
    """An integer may be written 5.0 and reaches the backend as 5; more tokens than any model writes are cut."""
    settings = passed_on(service, backend, **{name: value})
    assert settings == {name: got}
    assert isinstance(settings[name], int)


@rows("decisions.input.5")
def test_unknown_members_are_ignored(service: RunningService, backend: ScriptedBackend) -> None:
    """Whatever they hold they are neither an error nor passed on, whatever the backend would make of them."""
    unknown = {
        "n": 5,
        "tools": [{"type": "function"}],
        "tool_choice": "auto",
        "response_format": {"type": "json_object"},
        "logprobs": True,
        "stream_options": {"include_usage": True},
        "user": "someone",
        "metadata": {"a": "b"},
        "Temperature": 9,
        "maxTokens": -1,
        "": None,
        "\0": "سلام",
        "credits": 0,
        "billing_source": "api_balance",
        "account_id": "acc_other",
        "x" * 10_000: [],
    }
    assert passed_on(service, backend, **unknown) == {}
