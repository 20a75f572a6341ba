"""What each kind of server is told, and what is read from its answers. The servers' makers' own types: test_sdks.py."""

import json
from typing import Any

import pytest

from tarazu.backends.kinds import KINDS
from tarazu.backends.kinds.anthropic import MAX_TOKENS_DEFAULT
from tarazu.backends.kinds.gemini import REFUSALS
from tarazu.backends.port import BackendError, Fault, Reply
from tarazu.backends.replies import TOKENS_MAX, read_reply
from tests.support.dialects import ANSWERS, answer_with, anthropic_answer, gemini_answer, openai_answer

BLOCKED = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 11}}


def read(kind: str, answer: object) -> Reply:
    """Read a 2xx answer of this kind."""
    return read_reply(answer if isinstance(answer, bytes) else json.dumps(answer).encode(), KINDS[kind].read)


def fault(kind: str, answer: object) -> Fault:
    """Read an answer that holds no reply."""
    with pytest.raises(BackendError) as caught:
        read(kind, answer)
    assert caught.value.retry_after_s is None
    return caught.value.fault


@pytest.mark.parametrize("kind", KINDS)
def test_a_good_answer_is_a_reply_with_its_figures(kind: str) -> None:
    """The text is taken as it is, and the tokens as they were counted there."""
    assert read(kind, ANSWERS[kind]) == Reply(text="Hello there.", prompt_tokens=11, completion_tokens=7)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ["  Hello\n", "\u001c", "سلام", "x" * 100_000, "\0"])
def test_a_text_is_taken_unchanged(kind: str, text: str) -> None:
    """Nothing is trimmed, escaped or cut."""
    assert read(kind, answer_with(kind, text)).text == text


@pytest.mark.parametrize("kind", KINDS)
def test_blank_lines_before_an_answer_are_no_part_of_it(kind: str) -> None:
    """DeepSeek sends them while it works, to keep the connection."""
    assert read(kind, b"\n\n\n" + json.dumps(ANSWERS[kind]).encode()).text == "Hello there."


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ["", " \n", "\u2003\u00a0"])
def test_a_blank_text_is_no_reply(kind: str, text: str) -> None:
    """A server that has nothing to say has failed."""
    assert fault(kind, answer_with(kind, text)) is Fault.INVALID_REPLY


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", [5, True, ["Hello"], {"text": "Hello"}])
def test_a_text_of_another_type_is_no_reply(kind: str, text: object) -> None:
    """It is not turned into a text."""
    assert fault(kind, answer_with(kind, text)) is Fault.INVALID_REPLY


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"5",
        b'"Hello"',
        b"{}",
        b"<html>",
        b"[" * 100_000,
        b'{"error": {"message": "no"}}',
        b'{"choices": [], "content": [], "candidates": []}',
        b'{"choices": null, "content": null, "candidates": null}',
        b'{"choices": {}, "content": {}, "candidates": {}}',
        b'{"choices": [null], "content": [null], "candidates": [null]}',
        b'{"choices": [5], "content": [5], "candidates": [5]}',
        b'{"choices": [{}], "content": [{}], "candidates": [{}]}',
        b'{"candidates": [{"content": {"parts": [null]}}]}',
        b'{"candidates": [{"content": {"parts": {}}}]}',
        b'{"candidates": [{"content": null}], "promptFeedback": 5}',
    ],
)
def test_what_is_no_answer_of_a_kind_is_an_invalid_reply(kind: str, body: bytes) -> None:
    """Whatever stands in the body, it fails as a reply does, and not as a program does."""
    assert fault(kind, body) is Fault.INVALID_REPLY


@pytest.mark.parametrize("kind", KINDS)
def test_a_lone_surrogate_is_no_reply(kind: str) -> None:
    """It is no Unicode text, and could not be passed on."""
    assert fault(kind, answer_with(kind, "SURROGATE").replace(b"SURROGATE", b"\\ud83d")) is Fault.INVALID_REPLY


USAGE_MEMBERS = {"openai": "usage", "anthropic": "usage", "gemini": "usageMetadata"}
FIGURES = {
    "openai": ("prompt_tokens", "completion_tokens"),
    "anthropic": ("input_tokens", "output_tokens"),
    "gemini": ("promptTokenCount", "candidatesTokenCount"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("usage", [None, 5, "x", [], {}, [1, 2]])
def test_a_usage_of_another_type_spoils_no_reply(kind: str, usage: object) -> None:
    """It gives no figures."""
    assert read(kind, {**ANSWERS[kind], USAGE_MEMBERS[kind]: usage}) == Reply(text="Hello there.")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("figure", ["NaN", "-Infinity", "1e999", "-1", '"5"', "true", "5.5", "null", "9" * 5_000, "[]"])
def test_a_figure_that_is_nonsense_is_none(kind: str, figure: str) -> None:
    """Each is judged for itself."""
    usage = f'{{"{FIGURES[kind][0]}": {figure}, "{FIGURES[kind][1]}": 7}}'
    body = json.dumps({**ANSWERS[kind], USAGE_MEMBERS[kind]: "USAGE"}).replace('"USAGE"', usage).encode()
    assert read(kind, body) == Reply(text="Hello there.", completion_tokens=7)


def test_figures_are_bounded() -> None:
    """The largest one that is taken, and the first one that is not."""
    usage = {"prompt_tokens": TOKENS_MAX, "completion_tokens": TOKENS_MAX + 1}
    reply = read("openai", {**ANSWERS["openai"], "usage": usage})
    assert (reply.prompt_tokens, reply.completion_tokens) == (TOKENS_MAX, None)


REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("openai", openai_answer(None, message={"content": None, "refusal": "I cannot."})),
    ("openai", openai_answer("", finish_reason="content_filter")),
    ("anthropic", anthropic_answer({"type": "thinking", "thinking": "Hm."}, stop_reason="refusal")),
    ("anthropic", {**anthropic_answer(stop_reason="refusal"), "content": []}),
    ("gemini", BLOCKED),
    ("gemini", {**BLOCKED, "candidates": []}),
    ("gemini", {"candidates": [{"finishReason": "SAFETY"}]}),
    *(("gemini", gemini_answer({"text": ""}, finish_reason=reason)) for reason in REFUSALS),
]


@pytest.mark.parametrize(("kind", "answer"), REFUSED)
def test_a_model_or_filter_that_declines_is_a_refusal(kind: str, answer: dict[str, Any]) -> None:
    """The request is at fault, and the server is well."""
    assert fault(kind, answer) is Fault.REFUSAL


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        ("openai", openai_answer("Half of", finish_reason="content_filter")),
        ("openai", openai_answer(message={"content": "Half of", "refusal": "I cannot."})),
        ("anthropic", anthropic_answer({"type": "text", "text": "Half of"}, stop_reason="refusal")),
        ("gemini", gemini_answer({"text": "Half of"}, finish_reason="SAFETY")),
    ],
)
def test_a_text_before_a_refusal_is_a_reply(kind: str, answer: dict[str, Any]) -> None:
    """Whoever has got a text has got a reply."""
    assert read(kind, answer).text == "Half of"


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        ("openai", openai_answer("", finish_reason="length")),
        ("anthropic", anthropic_answer({"type": "thinking", "thinking": "Hm."}, stop_reason="max_tokens")),
        ("anthropic", {**anthropic_answer(stop_reason="model_context_window_exceeded"), "content": []}),
        ("gemini", {"candidates": [{"content": {"role": "model"}, "finishReason": "MAX_TOKENS"}]}),
    ],
)
def test_max_tokens_that_leave_no_room_are_the_requests_fault(kind: str, answer: dict[str, Any]) -> None:
    """A caller who allows one token of a model that thinks first does not make a backend look ill."""
    assert fault(kind, answer) is Fault.REQUEST_REFUSED


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        ("openai", openai_answer(message={"content": "So", "reasoning_content": "Hm.", "reasoning": "Hm."})),
        ("openai", openai_answer(message={"content": "So", "tool_calls": 5, "annotations": None})),
        (
            "anthropic",
            anthropic_answer(
                {"type": "thinking", "thinking": "Hm.", "signature": "x", "text": "Hm."},
                {"type": "redacted_thinking", "data": "x"},
                {"type": "text", "text": "S"},
                {"type": "text", "text": "o", "citations": None},
            ),
        ),
        ("gemini", gemini_answer({"text": "Hm.", "thought": True}, {"text": "S"}, {"text": "o", "thought": False})),
        ("gemini", gemini_answer({"functionCall": {"name": "f"}}, {"text": "So", "thoughtSignature": "x"})),
    ],
)
def test_thinking_is_no_part_of_the_reply(kind: str, answer: dict[str, Any]) -> None:
    """What a model says to itself stays there; texts in several parts are one."""
    assert read(kind, answer).text == "So"


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        ("openai", openai_answer(message={"content": None, "reasoning_content": "Hm."})),
        ("anthropic", anthropic_answer({"type": "thinking", "thinking": "Hm."})),
        ("gemini", gemini_answer({"text": "Hm.", "thought": True})),
    ],
)
def test_thinking_alone_is_no_reply(kind: str, answer: dict[str, Any]) -> None:
    """It never stands in for the text."""
    assert fault(kind, answer) is Fault.INVALID_REPLY


def test_what_was_read_from_a_cache_and_what_was_thought_is_counted() -> None:
    """The figures mean the same with every kind: all that was read, and all that was written."""
    anthropic = anthropic_answer(cache_creation_input_tokens=100, cache_read_input_tokens=1_000)
    assert read("anthropic", anthropic).prompt_tokens == 1_111
    assert read("gemini", gemini_answer(thoughtsTokenCount=500)).completion_tokens == 507


def test_a_cache_figure_that_is_nonsense_is_left_out() -> None:
    """The main figure stays."""
    assert read("anthropic", anthropic_answer(cache_read_input_tokens=-5)).prompt_tokens == 11


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reason", [5, [], {}, None, "unheard_of"])
def test_a_reason_that_nobody_knows_spoils_no_reply(kind: str, reason: object) -> None:
    """New words, and other types, may come."""
    body = json.dumps(ANSWERS[kind])
    for known in ('"stop"', '"end_turn"', '"STOP"'):
        body = body.replace(known, json.dumps(reason))
    assert read(kind, body.encode()).text == "Hello there."


def test_the_default_of_max_tokens_is_one_that_every_model_takes() -> None:
    """The oldest model that is still served writes no more than this."""
    assert MAX_TOKENS_DEFAULT <= 4_096
