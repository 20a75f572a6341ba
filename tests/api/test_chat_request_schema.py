"""The contract of the request body against the code that reads it: one is valid exactly when the other takes it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.domain.errors import Error, Refusal
from tarazu.domain.prompt import NO_MODEL, WHITE_SPACE, read_chat_request
from tests.support.contract import validator

CHECK = validator({"$ref": "#/components/schemas/ChatRequest"})

NUMBERS = st.integers(-3, 5) | st.integers() | st.floats(-3, 3) | st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(max_size=5) | st.text(alphabet=WHITE_SPACE + "\x1c\x00\ufeff\u200bx", max_size=3)
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS
VALUES = SCALARS | st.lists(SCALARS, max_size=6) | st.dictionaries(TEXTS, SCALARS, max_size=2)
PARTS = st.lists(st.fixed_dictionaries({"type": st.just("text") | VALUES, "text": TEXTS | VALUES}), max_size=3)
MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "role": st.sampled_from(["system", "user", "assistant", "tool", "User"]) | VALUES,
        "content": VALUES | PARTS,
    },
)
FORMATS = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "json_object", "json_schema"]) | VALUES},
    optional={
        "json_schema": VALUES
        | st.fixed_dictionaries(
            {"name": TEXTS | st.just("place")},
            optional={"schema": VALUES, "strict": VALUES, "description": VALUES},
        )
    },
)
BODIES = st.fixed_dictionaries(
    {},
    optional={
        "model": VALUES,
        "messages": st.lists(MESSAGES | VALUES, max_size=3) | VALUES,
        "prompt": VALUES,
        "message": VALUES,
        "input": VALUES,
        "stream": VALUES,
        "temperature": NUMBERS | VALUES,
        "top_p": NUMBERS | VALUES,
        "max_tokens": NUMBERS | VALUES,
        "max_completion_tokens": NUMBERS | VALUES,
        "stop": st.lists(TEXTS, max_size=6) | VALUES,
        "seed": NUMBERS | VALUES,
        "presence_penalty": NUMBERS | VALUES,
        "frequency_penalty": NUMBERS | VALUES,
        "response_format": FORMATS | VALUES,
        "tools": VALUES,
    },
)


def _is_taken(body: object) -> bool:
    """Tell whether the body is taken, but for what no schema can say: its length, and which models there are."""
    read = read_chat_request(json.dumps(body).encode())
    if isinstance(read, Refusal):
        return read.error is Error.INPUT_TOO_LARGE
    return read.model != NO_MODEL or (isinstance(body, dict) and isinstance(body["model"], str))


@given(BODIES)
def test_the_schema_is_as_lenient_as_the_code(body: dict[str, Any]) -> None:
    """Whatever members a body has, of whatever types: it is valid by the contract exactly when it is taken."""
    assert CHECK.is_valid(body) == _is_taken(body)


@given(BODIES)
def test_the_schema_is_as_lenient_with_valid_input(body: dict[str, Any]) -> None:
    """The same for bodies that have a prompt, so that all else decides."""
    asking = {"prompt": "Hello", **body}
    assert CHECK.is_valid(asking) == _is_taken(asking)


@pytest.mark.parametrize("body", [None, True, 1, "Hello", [], ["Hello"]])
def test_only_an_object_is_valid(body: object) -> None:
    """A body that is no JSON object is neither valid nor taken."""
    assert not CHECK.is_valid(body)
    assert not _is_taken(body)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (name, value)
        for name, bounds in {
            "temperature": (0, 2),
            "top_p": (0, 1),
            "presence_penalty": (-2, 2),
            "frequency_penalty": (-2, 2),
            "seed": (-(2**63) + 1, 2**63 - 1),
            "max_tokens": (1, 10**30),
            "max_completion_tokens": (1, 10**30),
        }.items()
        for bound in bounds
        for value in (bound - 1, bound, bound + 1)
    ],
)
def test_bounds(name: str, value: int) -> None:
    """At each bound of a setting, below and above it, the contract and the code agree."""
    body = {"prompt": "Hello", name: value}
    assert CHECK.is_valid(body) == _is_taken(body)


@pytest.mark.parametrize("character", WHITE_SPACE)
def test_white_space_is_no_text(character: str) -> None:
    """A text of any Unicode white space is blank by the contract too, and stays so beside another one."""
    assert not CHECK.is_valid({"prompt": character})
    assert not CHECK.is_valid({"messages": [{"role": "user", "content": character * 2}]})
    assert CHECK.is_valid({"prompt": f"{character}x"})
