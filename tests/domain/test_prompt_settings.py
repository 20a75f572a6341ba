"""The generation settings of a request: passed on when valid, a 400 when not (decisions, Input)."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.domain.errors import Error, Refusal
from tarazu.domain.prompt import (
    RESPONSE_FORMAT_BYTES_MAX,
    TOKENS_MAX,
    ChatRequest,
    ResponseFormat,
    Settings,
    read_chat_request,
)


def read(**settings: Any) -> ChatRequest | Refusal:
    """Read a body with these settings."""
    return read_chat_request(json.dumps({"prompt": "Hello", **settings}).encode())


def settings_of(**settings: Any) -> Settings:
    """Read settings that must be good."""
    request = read(**settings)
    assert isinstance(request, ChatRequest), request
    return request.settings


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", 0),
        ("temperature", 0.7),
        ("temperature", 2),
        ("top_p", 0),
        ("top_p", 1),
        ("presence_penalty", -2),
        ("presence_penalty", 2.0),
        ("frequency_penalty", -2.0),
        ("frequency_penalty", 2),
        ("max_tokens", 1),
        ("seed", 0),
        ("seed", -1),
        ("seed", 2**63 - 1),
    ],
)
def test_a_setting_at_or_within_its_bounds_is_passed_on(name: str, value: float) -> None:
    """Bounds are part of the range."""
    assert msgspec.to_builtins(settings_of(**{name: value})) == {name: value}


@pytest.mark.parametrize(("name", "value"), [("max_tokens", 5.0), ("max_completion_tokens", 5.0), ("seed", 5.0)])
def test_an_integer_may_be_written_with_a_fraction_of_zero(name: str, value: float) -> None:
    """As in JSON Schema, 5.0 is an integer; it is passed on as 5."""
    passed_on = getattr(settings_of(**{name: value}), "seed" if name == "seed" else "max_tokens")
    assert passed_on == 5
    assert isinstance(passed_on, int)


@pytest.mark.parametrize("value", [2**31, 10**30, 1e300])
def test_more_tokens_than_any_model_writes_are_cut(value: float) -> None:
    """No backend is sent a number that it could not read."""
    assert settings_of(max_tokens=value).max_tokens == TOKENS_MAX


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", -0.001),
        ("temperature", 2.001),
        ("temperature", "1"),
        ("temperature", True),
        ("temperature", [1]),
        ("top_p", -1),
        ("top_p", 1.5),
        ("presence_penalty", -2.5),
        ("presence_penalty", "0"),
        ("frequency_penalty", 3),
        ("max_tokens", 0),
        ("max_tokens", -1),
        ("max_tokens", 1.5),
        ("max_tokens", True),
        ("max_tokens", "10"),
        ("max_completion_tokens", 0),
        ("max_completion_tokens", 2.5),
        ("seed", 1.5),
        ("seed", "1"),
        ("seed", False),
        ("seed", 2**64),
        ("stop", 1),
        ("stop", True),
        ("stop", {"a": 1}),
        ("stop", [1]),
        ("stop", ["a", None]),
        ("stop", ["a", "b", "c", "d", "e"]),
        ("stop", "a" * 257),
        ("stop", ["a", "b" * 257]),
    ],
)
def test_an_invalid_setting_is_a_400_that_names_it(name: str, value: object) -> None:
    """The caller is told which setting it is, but not what was sent."""
    answer = read(**{name: value})
    assert isinstance(answer, Refusal)
    assert answer.error is Error.INVALID_REQUEST
    assert answer.message is not None
    assert answer.message.startswith(f"{name} must be ")


@pytest.mark.parametrize("name", [field.name for field in msgspec.structs.fields(Settings)] + ["max_completion_tokens"])
def test_null_counts_as_omitted(name: str) -> None:
    """Null is what many clients send for a setting that is not set."""
    assert settings_of(**{name: None}) == Settings()


@pytest.mark.parametrize(
    ("sent", "passed_on"),
    [
        ("a", ("a",)),
        (["a"], ("a",)),
        (["a", "b", "c", "d"], ("a", "b", "c", "d")),
        (["\u20ac" * 256], ("\u20ac" * 256,)),
        (" ", (" ",)),
        ("", None),
        ([], None),
        (["", ""], None),
        (["", "a"], ("a",)),
    ],
)
def test_stop_is_a_string_or_up_to_four(sent: object, passed_on: tuple[str, ...] | None) -> None:
    """One string becomes a list of one; an empty string can stop nothing and is left out."""
    assert settings_of(stop=sent).stop == passed_on


@pytest.mark.parametrize(
    ("sent", "passed_on"),
    [
        ({"max_tokens": 5}, 5),
        ({"max_completion_tokens": 6}, 6),
        ({"max_tokens": 5, "max_completion_tokens": 6}, 6),
        ({"max_tokens": 5, "max_completion_tokens": None}, 5),
    ],
)
def test_both_names_of_the_token_limit_are_known(sent: dict[str, Any], passed_on: int) -> None:
    """`max_completion_tokens` is the newer name, and wins."""
    assert settings_of(**sent).max_tokens == passed_on


def test_an_invalid_setting_answers_before_missing_input() -> None:
    """Row 10 is before row 12."""
    answer = read_chat_request(b'{"temperature": 3}')
    assert isinstance(answer, Refusal)
    assert answer.error is Error.INVALID_REQUEST


def test_streaming_answers_before_an_invalid_setting() -> None:
    """Row 11 looks at `stream` before the settings are looked at."""
    answer = read(stream=True, temperature=3)
    assert isinstance(answer, Refusal)
    assert answer.error is Error.STREAMING_NOT_SUPPORTED


def test_settings_that_were_not_sent_are_not_passed_on() -> None:
    """A backend's own defaults stay in force."""
    assert msgspec.json.encode(settings_of()) == b"{}"
    assert msgspec.json.encode(settings_of(temperature=0)) == b'{"temperature":0}'


@given(
    st.fixed_dictionaries(
        {},
        optional={
            field.name: st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text())
            for field in msgspec.structs.fields(Settings)
        },
    )
)
def test_whatever_is_accepted_is_within_bounds_and_can_be_sent_on(sent: dict[str, Any]) -> None:
    """No combination of types reaches a backend out of range."""
    answer = read(**sent)
    if isinstance(answer, ChatRequest):
        settings = answer.settings
        assert settings.temperature is None or 0 <= settings.temperature <= 2
        assert settings.top_p is None or 0 <= settings.top_p <= 1
        assert settings.presence_penalty is None or -2 <= settings.presence_penalty <= 2
        assert settings.frequency_penalty is None or -2 <= settings.frequency_penalty <= 2
        assert settings.max_tokens is None or settings.max_tokens >= 1
        assert settings.stop is None or 1 <= len(settings.stop) <= 4
        assert settings.seed is None or abs(settings.seed) < 2**63
        assert json.loads(msgspec.json.encode(settings)) is not None


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (None, None),
        ({"type": "text"}, None),
        ({"type": "json_object"}, ResponseFormat()),
        (
            {"type": "json_schema", "json_schema": {"name": "place", "schema": {"type": "object"}, "strict": True}},
            ResponseFormat(name="place", schema=msgspec.Raw(b'{"type": "object"}'), strict=True),
        ),
        (
            {"type": "json_schema", "json_schema": {"name": "a-b_1", "description": "x"}, "other": 1},
            ResponseFormat(name="a-b_1", description="x"),
        ),
    ],
)
def test_a_form_of_the_reply_is_taken(written: object, read: ResponseFormat | None) -> None:
    """Text is what every reply is."""
    taken = settings_of(response_format=written).response_format
    assert msgspec.json.encode(taken) == msgspec.json.encode(read)


@pytest.mark.parametrize(
    "written",
    [
        "json_object",
        [],
        {},
        {"type": "xml"},
        {"type": None},
        {"type": "json_schema"},
        {"type": "json_schema", "json_schema": {}},
        {"type": "json_schema", "json_schema": {"name": ""}},
        {"type": "json_schema", "json_schema": {"name": "a b"}},
        {"type": "json_schema", "json_schema": {"name": "a" * 65}},
        {"type": "json_schema", "json_schema": {"name": "a", "schema": []}},
        {"type": "json_schema", "json_schema": {"name": "a", "strict": 1}},
        {"type": "json_object", "x": "y" * RESPONSE_FORMAT_BYTES_MAX},
    ],
)
def test_a_form_that_is_none_is_refused(written: object) -> None:
    """It is said what one is."""
    refusal = read(response_format=written)
    assert isinstance(refusal, Refusal)
    assert refusal.error is Error.INVALID_REQUEST
    assert "response_format must" in str(refusal.message)
