"""The body of POST /chat/completions: rows 10 to 13 of the order of checks, and the section Input, of decisions.md."""

import json
import re
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from tarazu.domain.errors import NOTHING, Error, PassedOver, Refusal
from tarazu.domain.prompt import (
    INPUT_CHARACTERS_MAX,
    ITEMS_MAX,
    MESSAGES_MAX,
    WHITE_SPACE,
    ChatRequest,
    Message,
    read_chat_request,
)

HELLO = {"role": "user", "content": "Hello"}
MEMBERS = ("messages", "prompt", "message", "input", "stream", "model", "temperature", "stop", "seed", "max_tokens")

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=5),
    max_leaves=10,
)
short_texts = st.text(st.sampled_from([*WHITE_SPACE, "a", "\u200b", "\x1f"]), max_size=4)
parts = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "text", "text", "image_url", "Text"]), "text": short_texts | json_values},
    optional={"cache_control": json_values},
)
messages = st.fixed_dictionaries(
    {},
    optional={
        "role": st.sampled_from(["system", "user", "assistant", "User", "tool", ""]) | json_values,
        "content": short_texts | st.lists(parts, max_size=3) | json_values,
        "name": json_values,
    },
)


def read(body: Any) -> ChatRequest | Refusal:
    """Read a body that is given as a value."""
    return read_chat_request(json.dumps(body).encode())


def accepted(body: Any) -> ChatRequest:
    """Read a body that must be good."""
    request = read(body)
    assert isinstance(request, ChatRequest), request
    return request


def text_of(content: object) -> str | None:
    """Say what text a content is, by the decisions' words; None: it is none."""
    if isinstance(content, str) or not isinstance(content, list):
        return content if isinstance(content, str) else None
    if all(isinstance(part, dict) and part.get("type") == "text" for part in content):
        texts = [part.get("text") for part in content]
        return "\n".join(texts) if all(isinstance(text, str) for text in texts) else None
    return None


def error_of(body: bytes | dict[str, Any]) -> Error:
    """Tell why a body is refused."""
    answer = read_chat_request(body if isinstance(body, bytes) else json.dumps(body).encode())
    assert isinstance(answer, Refusal), answer
    return answer.error


# Row 10: valid UTF-8 JSON, an object, bounded nesting.


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"{",
        b'{"prompt": "Hello"',
        b'{"prompt": "Hello"} {}',
        b'{"prompt": "Hello",}',
        b"{'prompt': 'Hello'}",
        b'{"prompt": NaN}',
        b'{"prompt": "Hello", "temperature": Infinity}',
        b'{"prompt": "Hello", "temperature": -Infinity}',
        b'{"prompt": "Hello", "other": NaN}',
        b'{"prompt": "\xff"}',
        b'{"prompt": "\xc0\x80"}',
        b'{"prompt": "\xed\xa0\xbd"}',
        b'{"\xff": 1, "prompt": "Hello"}',
        b'{"prompt": "\x00"}',
        b'{"prompt": "\x1f"}',
        b'\xef\xbb\xbf{"prompt": "Hello"}',
        '{"prompt": "Hello"}'.encode("utf-16"),
        '{"prompt": "é"}'.encode("latin-1"),
        b"\x1f\x8b\x08\x00",
        b"[" * 1_000_000,
        b'{"prompt": "Hello", "other": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"prompt": "Hello", "other": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}",
    ],
    ids=lambda body: repr(body[:48]),
)
def test_a_body_that_is_no_json_is_invalid(body: bytes) -> None:
    """Row 10: broken JSON, another encoding, NaN, or nesting without bound is answered 400."""
    assert error_of(body) is Error.INVALID_REQUEST


@pytest.mark.parametrize("value", [b"1e400", b"-1e400", b"1" * 5_000, b"0." + b"1" * 5_000])
def test_a_number_that_does_not_fit_is_json_where_it_is_ignored(value: bytes) -> None:
    """Nobody reads it; where it is a setting, it is out of bounds."""
    prompt = b'{"prompt": "Hello", "%s": %s}'
    assert isinstance(read_chat_request(prompt % (b"other", value)), ChatRequest)
    assert isinstance(read_chat_request(prompt % (b"model", value)), ChatRequest)
    assert error_of(prompt % (b"seed", value)) is Error.INVALID_REQUEST
    assert error_of(b'{"prompt": %s}' % value) is Error.MESSAGES_REQUIRED
    messages = b'{"messages": [%s, {"role": "user", "content": "a", "x": %s}]}'
    assert isinstance(read_chat_request(messages % (value, value)), ChatRequest)


@pytest.mark.parametrize("surrogate", ["\\ud83d", "\\ude00", "\\ud83dx", "\\ud83d\\ud83d", "\\ude00\\ud83d"])
@pytest.mark.parametrize("body", ['{"prompt": "%s"}', '{"%s": 1, "prompt": "Hello"}', '{"prompt": "Hello", "x": "%s"}'])
def test_a_lone_surrogate_is_invalid_wherever_it_stands(body: str, surrogate: str) -> None:
    """Input: lone surrogates are no Unicode text: 400."""
    assert error_of((body % surrogate).encode()) is Error.INVALID_REQUEST


@pytest.mark.parametrize("body", [b"[]", b"null", b"true", b"1", b'"prompt"', b'[{"prompt": "Hello"}]'])
def test_a_body_that_is_no_object_is_invalid(body: bytes) -> None:
    """Row 10: any JSON but an object is answered 400."""
    assert error_of(body) is Error.INVALID_REQUEST


def test_the_reason_does_not_quote_the_body() -> None:
    """What a caller sent is not repeated in the error, nor in a log of it."""
    answer = read_chat_request(b'{"prompt": "my secret" oops}')
    assert isinstance(answer, Refusal)
    assert "secret" not in str(answer)
    assert "oops" not in str(answer)


def test_surrogate_pairs_are_one_character() -> None:
    """An escaped pair is the character that it stands for."""
    request = read_chat_request(b'{"prompt": "\\ud83d\\ude00"}')
    assert isinstance(request, ChatRequest)
    assert request.messages == (Message("user", "\N{GRINNING FACE}"),)


@pytest.mark.parametrize(
    "escape", ["\\u0000", "\\u0001", "\\u001c", "\\u001f", "\\u007f", "\\u200b", "\\ufeff", "\\uffff"]
)
@pytest.mark.parametrize("body", ['{"prompt": "%s"}', '{"messages": [{"role": "user", "content": "%s"}]}'])
def test_escaped_control_characters_pass_unchanged(body: str, escape: str) -> None:
    """Input: NUL and other control characters that are properly escaped go to the model as they are."""
    request = read_chat_request((body % escape).encode())
    assert isinstance(request, ChatRequest)
    assert request.messages[0].content == json.loads(f'"{escape}"')


def test_of_duplicate_members_the_last_wins() -> None:
    """Input: duplicate JSON members."""
    request = read_chat_request(b'{"prompt": "one", "model": "a", "prompt": "two", "model": "b"}')
    assert isinstance(request, ChatRequest)
    assert (request.model, request.messages) == ("b", (Message("user", "two"),))
    again = read_chat_request(b'{"messages": [{"role": "user", "role": "system", "content": "a", "content": "b"}]}')
    assert isinstance(again, ChatRequest)
    assert again.messages == (Message("system", "b"),)
    mended = read_chat_request(b'{"messages": [{"role": 1, "role": "user", "content": [], "content": "b"}]}')
    assert isinstance(mended, ChatRequest)
    assert mended.messages == (Message("user", "b"),)


def test_nesting_within_reason_passes() -> None:
    """The bound on nesting hits nobody who sends a tool's schema along."""
    accepted({"prompt": "Hello", "tools": json.loads("[" * 100 + "]" * 100)})


# Row 11: stream.


def test_stream_true_is_refused() -> None:
    """Row 11: streaming_not_supported."""
    assert error_of({"prompt": "Hello", "stream": True}) is Error.STREAMING_NOT_SUPPORTED


@pytest.mark.parametrize("body", [{}, {"stream": False}, {"stream": None}])
def test_stream_false_null_or_left_out_passes(body: dict[str, Any]) -> None:
    """Row 11: absent, null or false."""
    accepted({"prompt": "Hello", **body})


@pytest.mark.parametrize("stream", [0, 1, "true", "", [], {}, 0.0])
def test_stream_of_another_type_is_invalid(stream: object) -> None:
    """Row 11: another type is a 400."""
    assert error_of({"prompt": "Hello", "stream": stream}) is Error.INVALID_REQUEST


# Row 12: valid input.


@pytest.mark.parametrize("name", ["prompt", "message", "input"])
def test_a_prompt_becomes_one_user_message(name: str) -> None:
    """Input: prompt and its aliases."""
    assert accepted({name: "Hello"}).messages == (Message("user", "Hello"),)


def test_messages_win_over_a_prompt() -> None:
    """Input: `messages` wins when it holds at least one valid message."""
    body = {"messages": [HELLO], "prompt": "one", "message": "two", "input": "three"}
    assert accepted(body).messages == (Message("user", "Hello"),)


@pytest.mark.parametrize(
    "unusable", [None, [], "Hello", HELLO, 1, [[]], [{"role": "user"}], [{"role": "user", "content": " "}]]
)
def test_a_prompt_counts_where_no_message_is_valid(unusable: object) -> None:
    """Input: otherwise the prompt; `messages` of another type than array counts as absent."""
    assert accepted({"messages": unusable, "prompt": "one"}).messages == (Message("user", "one"),)


@pytest.mark.parametrize("blank", ["", " ", "\t\n", "\u3000", None, 1, ["one"], {"content": "one"}, True])
def test_the_first_prompt_that_is_a_string_and_not_blank_wins(blank: object) -> None:
    """Input: in the order prompt, message, input."""
    assert accepted({"input": "three", "message": "two", "prompt": "one"}).messages[0].content == "one"
    assert accepted({"prompt": blank, "input": "three", "message": "two"}).messages[0].content == "two"
    assert accepted({"prompt": blank, "message": blank, "input": "three"}).messages[0].content == "three"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"messages": []},
        {"prompt": ""},
        {"prompt": " \n"},
        {"prompt": None, "message": 1, "input": []},
        {"messages": HELLO},
        {"messages": [{"role": "tool", "content": "Hello"}]},
        {"messages": [{"role": "user", "content": "\u2003"}], "input": "\u00a0"},
        {"Prompt": "Hello"},
    ],
)
def test_no_valid_input_is_refused(body: dict[str, Any]) -> None:
    """Row 12: messages_required."""
    assert error_of(body) is Error.MESSAGES_REQUIRED


@pytest.mark.parametrize("role", ["system", "user", "assistant"])
def test_each_role_is_kept(role: str) -> None:
    """The specification's three roles."""
    assert accepted({"messages": [{"role": role, "content": "a"}]}).messages[0].role == role


@pytest.mark.parametrize(
    "message",
    [
        None,
        1,
        "Hello",
        [],
        {},
        {"role": "user"},
        {"content": "Hello"},
        {"role": "User", "content": "Hello"},
        {"role": " user", "content": "Hello"},
        {"role": "tool", "content": "Hello"},
        {"role": "developer", "content": "Hello"},
        {"role": None, "content": "Hello"},
        {"role": ["user"], "content": "Hello"},
        {"role": {"user": 1}, "content": "Hello"},
        {"role": "user", "content": None},
        {"role": "user", "content": ""},
        {"role": "user", "content": " \u2028\r\n"},
        {"role": "user", "content": 1},
        {"role": "user", "content": []},
        {"role": "user", "content": [{"type": "text", "text": "Hello"}, {"type": "image_url", "image_url": {}}]},
    ],
)
def test_an_invalid_message_is_dropped_without_an_error(message: object) -> None:
    """Input: the valid ones around it stay, in their order."""
    kept = accepted({"messages": [{"role": "system", "content": "a"}, message, {"role": "user", "content": "b"}]})
    assert kept.messages == (Message("system", "a"), Message("user", "b"))


def test_other_members_of_a_message_and_of_the_body_are_ignored() -> None:
    """Input: unknown members change nothing."""
    body = {"messages": [{**HELLO, "name": "x", "tool_calls": []}], "user": "me", "n": 3, "tools": [{}]}
    assert structs.replace(accepted(body), passed_over=NOTHING) == accepted({"messages": [HELLO]})


def test_trimming_takes_unicodes_white_space_and_nothing_else() -> None:
    """Input: the property White_Space: what `str.isspace` knows, without the separators U+001C to U+001F."""
    spaces = {chr(code) for code in range(sys.maxunicode + 1) if chr(code).isspace()}
    assert set(WHITE_SPACE) == spaces - set("\x1c\x1d\x1e\x1f")
    assert len(WHITE_SPACE) == len(set(WHITE_SPACE)) == 25


@given(st.text(st.sampled_from(WHITE_SPACE)), st.text(min_size=1), st.text(st.sampled_from(WHITE_SPACE)))
def test_white_space_inside_a_text_stays(before: str, middle: str, after: str) -> None:
    """Only both ends are trimmed, and only of white space."""
    middle = f"x{middle}x"
    assert accepted({"prompt": before + middle + after}).messages[0].content == middle
    assert accepted({"messages": [{"role": "user", "content": before + middle + after}]}).messages[0].content == middle


@given(st.lists(messages | json_values, max_size=6), st.text(st.sampled_from(" \u3000ab"), max_size=3) | json_values)
def test_what_is_kept_is_what_the_decisions_say(sent: list[Any], prompt: object) -> None:
    """Any list of messages and any prompt: the same answer as from the decisions' own words."""
    kept = [
        (item["role"], text.strip(WHITE_SPACE))
        for item in sent
        if isinstance(item, dict)
        and any(item.get("role") == role for role in ("system", "user", "assistant"))
        and (text := text_of(item.get("content")) or "").strip(WHITE_SPACE)
    ]
    dropped = len(sent) - len(kept)
    if not kept and isinstance(prompt, str) and prompt.strip(WHITE_SPACE):
        kept = [("user", prompt.strip(WHITE_SPACE))]
    answer = read({"messages": sent, "prompt": prompt})
    assert answer.passed_over == PassedOver(dropped)
    if kept:
        assert isinstance(answer, ChatRequest)
        assert [(message.role, message.content) for message in answer.messages] == kept
    else:
        assert answer == Refusal(error=Error.MESSAGES_REQUIRED, passed_over=PassedOver(dropped))


# Row 13: at most 24,000 characters.


@pytest.mark.parametrize("character", ["a", "\N{LATIN SMALL LETTER E WITH ACUTE}", "\u200f", "\N{GRINNING FACE}", "\0"])
def test_exactly_24_000_characters_pass_and_one_more_does_not(character: str) -> None:
    """Row 13: characters are code points, whatever they take in UTF-8 or UTF-16."""
    assert INPUT_CHARACTERS_MAX == 24_000
    accepted({"prompt": character * 24_000})
    assert error_of({"prompt": character * 24_001}) is Error.INPUT_TOO_LARGE


def test_a_letter_and_its_combining_mark_are_two_characters() -> None:
    """Code points are counted, not what looks like one character."""
    accepted({"prompt": "e\u0301" * 12_000})
    assert error_of({"prompt": "e\u0301" * 12_000 + "e"}) is Error.INPUT_TOO_LARGE


def test_characters_are_counted_over_all_contents_together() -> None:
    """Row 13: total input."""
    halves = [{"role": role, "content": "a" * 8_000} for role in ("system", "user", "assistant")]
    accepted({"messages": halves})
    assert error_of({"messages": [*halves, {"role": "user", "content": "a"}]}) is Error.INPUT_TOO_LARGE


def test_512_messages_pass_and_one_more_does_not() -> None:
    """Row 13: valid ones count, and of those that are dropped none."""
    assert MESSAGES_MAX == 512
    accepted({"messages": [HELLO, {}] * 512})
    assert error_of({"messages": [HELLO, {}] * 513}) is Error.INPUT_TOO_LARGE


@pytest.mark.parametrize("dropped", [{}, [], 1, "", None, {"role": "user", "content": " "}])
def test_more_elements_than_are_looked_at_are_too_many(dropped: object) -> None:
    """Whatever comes behind them; without a valid one among them, and no prompt, there is no input."""
    accepted({"messages": [*[dropped] * (ITEMS_MAX - 1), HELLO]})
    assert error_of({"messages": [HELLO, *[dropped] * ITEMS_MAX]}) is Error.INPUT_TOO_LARGE
    assert error_of({"messages": [*[dropped] * ITEMS_MAX, HELLO]}) is Error.MESSAGES_REQUIRED


def test_what_is_trimmed_or_dropped_does_not_count() -> None:
    """Input: counted after trimming and dropping."""
    body = {
        "messages": [
            {"role": "user", "content": "\n" * 30_000 + "a" * 24_000 + " " * 30_000},
            {"role": "tool", "content": "b" * 30_000},
        ],
        "prompt": "c" * 30_000,
        "user": "d" * 30_000,
    }
    accepted(body)


# The model, the order, and what holds for any bytes.


def test_a_model_is_handed_on_as_sent() -> None:
    """Model ids are matched exactly: nothing is trimmed or folded."""
    assert accepted({"prompt": "Hello", "model": " org/Model:1.5 "}).model == " org/Model:1.5 "


@pytest.mark.parametrize("body", [{}, {"model": None}])
def test_a_model_left_out_or_null_asks_for_the_default(body: dict[str, Any]) -> None:
    """Input: `model` omitted or null."""
    assert accepted({"prompt": "Hello", **body}).model is None


@pytest.mark.parametrize("model", [1, True, ["small"], {"id": "small"}, ""])
def test_a_model_that_is_no_id_asks_for_no_model(model: object) -> None:
    """Input: any other value that is not a usable id is answered like an unknown one, in its turn."""
    assert accepted({"prompt": "Hello", "model": model}).model == ""


FAULTS = {
    10: ('"other": NaN', Error.INVALID_REQUEST),
    11: ('"stream": true', Error.STREAMING_NOT_SUPPORTED),
    12: ('"messages": []', Error.MESSAGES_REQUIRED),
    13: (f'"prompt": "{"a" * 24_001}"', Error.INPUT_TOO_LARGE),
}
"""For each row, a member of a body that fails its check."""


@pytest.mark.parametrize(("earlier", "later"), [(10, 11), (10, 12), (10, 13), (11, 12), (11, 13)])
def test_of_two_faults_in_a_body_the_earlier_row_answers(earlier: int, later: int) -> None:
    """Rows 10 to 13, two at a time; only 12 and 13 exclude each other."""
    body = f"{{{FAULTS[later][0]}, {FAULTS[earlier][0]}}}"
    assert error_of(body.encode()) is FAULTS[earlier][1]


@given(st.dictionaries(st.text(max_size=3) | st.sampled_from(["tools", "n", "x" * 64, "x" * 65]), json_values))
def test_members_that_nobody_reads_are_told(extra: dict[str, Any]) -> None:
    """Sorted, at most 16, those that a header can carry; what is null counts as omitted."""
    extra = {name: value for name, value in extra.items() if name not in MEMBERS}
    told = accepted({"messages": [HELLO], **extra}).passed_over.parameters
    nameable = [
        name for name, value in extra.items() if value is not None and re.fullmatch(r"[\w.-]{1,64}", name, re.ASCII)
    ]
    assert set(told) <= set(nameable)
    assert list(told) == sorted(told)
    assert len(told) == min(len(nameable), 16)


@given(st.binary())
def test_no_bytes_make_it_raise(body: bytes) -> None:
    """Any bytes have an answer."""
    assert isinstance(read_chat_request(body), ChatRequest | Refusal)


@given(st.dictionaries(st.sampled_from(MEMBERS) | st.text(max_size=8), json_values | st.lists(messages), max_size=8))
def test_no_json_makes_it_raise(body: dict[str, Any]) -> None:
    """Any members of any type have an answer, and what is accepted keeps its promises."""
    answer = read(body)
    if isinstance(answer, ChatRequest):
        assert answer.messages
        assert all(
            message.content and message.content.strip(WHITE_SPACE) == message.content for message in answer.messages
        )
        assert sum(len(message.content) for message in answer.messages) <= INPUT_CHARACTERS_MAX
        assert body.get("stream") in (None, False)


@given(st.data())
def test_no_damage_to_a_good_body_makes_it_raise(data: st.DataObject) -> None:
    """A byte changed, a part cut out, the end missing: still an answer."""
    body = json.dumps({"messages": [HELLO], "temperature": 0.5, "stop": ["a"], "model": "small"}).encode()
    start = data.draw(st.integers(0, len(body)))
    end = data.draw(st.integers(start, len(body)))
    damaged = body[:start] + data.draw(st.binary(max_size=4)) + body[end:]
    assert isinstance(read_chat_request(damaged), ChatRequest | Refusal)
