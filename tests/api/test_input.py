"""What is asked: messages, prompt and its aliases, trimming and counting. Rows 12 and 13 of the order of checks."""

from typing import Any

import pytest

from tests.support.backend import ScriptedBackend
from tests.support.effects import assert_took_only_a_place
from tests.support.envelopes import assert_domain_error
from tests.support.rows import rows
from tests.support.service import RunningService

pytestmark = pytest.mark.usefixtures("backend")

HELLO = {"role": "user", "content": "Hello"}
INPUT_CHARACTERS_MAX = 24_000
WHITE_SPACE = (
    *map(chr, range(0x09, 0x0E)),
    *" \x85\xa0\u1680",
    *map(chr, range(0x2000, 0x200B)),
    *"\u2028\u2029\u202f\u205f\u3000",
)
"""Unicode's White_Space property (PropList.txt): 25 characters."""
NOT_STRINGS: tuple[Any, ...] = (None, True, False, 0, 5, 1.5, [], ["Hello"], {}, {"text": "Hello"})
TEXT_PART = {"type": "text", "text": "Hello"}
NO_TEXT_PARTS: tuple[Any, ...] = (
    {"type": "image_url", "image_url": {"url": "data:,"}},
    {"type": "Text", "text": "Hello"},
    {"text": "Hello"},
    {"type": "text"},
    {"type": "text", "text": None},
    {"type": "text", "text": ["Hello"]},
    "Hello",
    None,
    [TEXT_PART],
)
EMOJI = "\N{GRINNING FACE}"


def asked(service: RunningService, backend: ScriptedBackend, body: dict[str, Any]) -> list[dict[str, str]]:
    """Send a body that must be served; answer with the messages that the backend got."""
    backend.received.clear()
    answer = service.post(service.customer(), body)
    assert answer.status == 200, answer
    (received,) = backend.received
    messages: list[dict[str, str]] = received.body["messages"]
    return messages


def refused(service: RunningService, backend: ScriptedBackend, body: dict[str, Any], status: int, code: str) -> None:
    """Send a body that must be refused after it has taken its place, without a credit and without a call."""
    backend.received.clear()
    customer = service.customer()
    answer = service.post(customer, body)
    assert assert_domain_error(answer, status, code) == {}
    assert_took_only_a_place(service, backend, customer, answer)


@rows("spec.chat_request_body.messages", "spec.message.role", "spec.message.content", "decisions.input.2")
def test_a_conversation(service: RunningService, backend: ScriptedBackend) -> None:
    """The backend gets the messages of all three roles in their order, repeated ones too."""
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello!"},
        {"role": "user", "content": "Hi"},
        {"role": "system", "content": "سلام، چطوری؟"},
        {"role": "assistant", "content": f"a\nb {EMOJI}"},
        {"role": "user", "content": "Hi"},
    ]
    assert asked(service, backend, {"messages": messages}) == messages


@rows("spec.chat_request_body.messages", "spec.message.content", "decisions.input.2")
@pytest.mark.parametrize(
    "invalid",
    [
        *NOT_STRINGS,
        "Hello",
        [HELLO],
        {"role": "user"},
        {"content": "Hello"},
        *({"role": role, "content": "Hello"} for role in ("", "User", "USER", " user", "user ", "tool", "developer")),
        *({"role": role, "content": "Hello"} for role in NOT_STRINGS),
        *({"role": "user", "content": content} for content in NOT_STRINGS),
        *({"role": "user", "content": [TEXT_PART, part]} for part in NO_TEXT_PARTS),
        {"role": "user", "content": [{"type": "text", "text": " "}]},
        {"role": "user", "content": ""},
        {"role": "user", "content": " \n\t"},
        {"Role": "user", "content": "Hello"},
        {"role": "user", "Content": "Hello"},
        {"role": "user", "text": "Hello"},
    ],
    ids=repr,
)
def test_an_invalid_message(service: RunningService, backend: ScriptedBackend, invalid: Any) -> None:
    """It is dropped without an error from among valid ones; where it stands alone there is no input."""
    other = {"role": "assistant", "content": "Bye"}
    assert asked(service, backend, {"messages": [invalid, HELLO, invalid, other, invalid]}) == [HELLO, other]
    refused(service, backend, {"messages": [invalid, invalid]}, 422, "messages_required")


@rows("decisions.input.2")
def test_text_parts(service: RunningService, backend: ScriptedBackend) -> None:
    """In any role they are the text that they are together, with a newline between them, trimmed at both ends."""
    parts = [{"type": "text", "text": "\n What is"}, {"type": "text", "text": "", "cache_control": {}}, TEXT_PART]
    sent = [{"role": role, "content": parts} for role in ("system", "assistant", "user")]
    text = "What is\n\nHello"
    assert asked(service, backend, {"messages": sent}) == [{**each, "content": text} for each in sent]


@rows(
    "decisions.input.2", "decisions.input.5", "decisions.added_by_this_project.21", "decisions.added_by_this_project.22"
)
def test_what_is_passed_over_is_told(service: RunningService) -> None:
    """The number of messages that were dropped, and the members that nobody reads, on each answer of a body."""
    customer = service.customer()
    invalid, odd = {"role": "developer", "content": "x"}, {"tools": [], "n": 1, "x y": 1, "user": None, "z" * 65: 1}
    told = service.post(customer, {"messages": [invalid, HELLO, invalid], **odd})
    assert (told.status, told.headers["x-dropped-messages"]) == (200, "2")
    assert told.headers["x-ignored-parameters"] == "n, tools"
    refused_ = service.post(customer, {"messages": [invalid], **odd})
    assert (refused_.status, refused_.headers["x-dropped-messages"]) == (422, "1")
    assert refused_.headers["x-ignored-parameters"] == "n, tools"
    missing = service.post(customer, {"messages": [invalid, HELLO], "model": "no/such"})
    assert (missing.status, missing.headers["x-dropped-messages"]) == (404, "1")
    plain = service.post(customer, {"messages": [HELLO], "temperature": 1, "model": "test/one"})
    assert plain.status == 200
    assert not {"x-dropped-messages", "x-ignored-parameters"} & set(plain.headers)
    many = service.post(customer, {"messages": [HELLO], **{f"x{number:02}": 1 for number in range(20)}})
    assert many.headers["x-ignored-parameters"] == ", ".join(f"x{number:02}" for number in range(16))


@rows("decisions.input.7")
def test_a_form_of_the_reply_is_asked_of_a_model_that_knows_it(
    service: RunningService, backend: ScriptedBackend
) -> None:
    """Of another it is not, which is told, also where the reply is one of before; what is none is 400."""
    customer = service.customer("large")
    schema = {"type": "json_schema", "json_schema": {"name": "place", "schema": {"type": "object"}}}
    asking = {"messages": [HELLO], "response_format": schema, "tools": []}
    knows = service.post(customer, {**asking, "model": "odd/a:b.c-1/x"})
    assert (knows.status, knows.headers["x-ignored-parameters"]) == (200, "tools")
    assert backend.received[-1].body["response_format"] == schema
    for replayed in (None, "true"):
        told = service.post(customer, {**asking, "model": "test/one"}, idempotency_key="of a form")
        assert (told.status, told.headers.get("idempotent-replayed")) == (200, replayed)
        assert told.headers["x-ignored-parameters"] == "response_format, tools"
    assert "response_format" not in backend.received[-1].body
    plain = service.post(customer, {"messages": [HELLO], "response_format": {"type": "text"}, "model": "test/one"})
    assert "x-ignored-parameters" not in plain.headers
    assert service.post(customer, {**asking, "response_format": {"type": "xml"}}).status == 400


@rows("decisions.input.2")
def test_other_members_of_a_message_are_ignored(service: RunningService, backend: ScriptedBackend) -> None:
    """They are neither an error nor passed on."""
    message = {**HELLO, "name": "Ann", "tool_calls": [{"id": 1}], "refusal": None, "x": {"role": "tool"}}
    assert asked(service, backend, {"messages": [message]}) == [HELLO]


@rows("decisions.input.2")
@pytest.mark.parametrize("messages", [None, "Hello", 5, True, {}, HELLO, {"0": HELLO}], ids=repr)
def test_messages_of_another_type_than_array(service: RunningService, backend: ScriptedBackend, messages: Any) -> None:
    """They count as absent: a prompt is taken, and without one there is no input."""
    prompted = [{"role": "user", "content": "Prompt"}]
    assert asked(service, backend, {"messages": messages, "prompt": "Prompt"}) == prompted
    refused(service, backend, {"messages": messages}, 422, "messages_required")


@rows(
    "spec.chat_request_body.prompt",
    "spec.chat_request_body.message",
    "spec.chat_request_body.input",
    "decisions.input.1",
    "decisions.order_of_checks.12",
)
@pytest.mark.parametrize("name", ["prompt", "message", "input"])
def test_a_prompt(service: RunningService, backend: ScriptedBackend, name: str) -> None:
    """Under any of its three names a prompt becomes one user message, trimmed; names have a case."""
    assert asked(service, backend, {name: "\n Hello "}) == [HELLO]
    refused(service, backend, {name.capitalize(): "Hello"}, 422, "messages_required")


@rows(
    "spec.chat_request_body.prompt",
    "spec.chat_request_body.message",
    "spec.chat_request_body.input",
    "decisions.input.1",
    "decisions.order_of_checks.12",
)
@pytest.mark.parametrize("unusable", [*NOT_STRINGS, "", " \t\n\u3000", [HELLO]], ids=repr)
def test_the_first_usable_of_prompt_message_and_input(
    service: RunningService, backend: ScriptedBackend, unusable: Any
) -> None:
    """The first that is a string and not blank is taken; with none there is no input."""
    names = ("prompt", "message", "input")
    for place, name in enumerate(names):
        members = {each: unusable if before < place else f"By {each}" for before, each in enumerate(names)}
        assert asked(service, backend, dict(reversed(members.items()))) == [{"role": "user", "content": f"By {name}"}]
    refused(service, backend, dict.fromkeys(names, unusable), 422, "messages_required")


@rows("decisions.input.1", "spec.chat_request_body.messages", "spec.chat_request_body.prompt")
def test_messages_win(service: RunningService, backend: ScriptedBackend) -> None:
    """With one valid message the prompts are not looked at; with none the prompt is taken."""
    prompts = {"prompt": "x" * 30_000, "message": 5, "input": "y"}
    assert asked(service, backend, {**prompts, "messages": [{"role": "tool", "content": "z"}, HELLO]}) == [HELLO]
    blank = [{"role": "user", "content": " "}]
    for messages in ([], blank, [None]):
        body = {"messages": messages, "prompt": "Prompt"}
        assert asked(service, backend, body) == [{"role": "user", "content": "Prompt"}]


@rows("spec.codes.messages_required", "decisions.order_of_checks.12")
@pytest.mark.parametrize("body", [{}, {"model": "test/one"}, {"messages": []}, {"text": "Hello"}], ids=repr)
def test_no_input(service: RunningService, backend: ScriptedBackend, body: dict[str, Any]) -> None:
    """Without messages and prompt the call is 422 messages_required."""
    refused(service, backend, body, 422, "messages_required")


@rows("spec.message.content", "decisions.input.3")
def test_exactly_unicode_white_space_is_trimmed(service: RunningService, backend: ScriptedBackend) -> None:
    """Of the basic plane's characters the 25 of Unicode's White_Space are removed at both ends; inside they stay."""
    characters = [chr(code) for code in range(0x10000) if not 0xD800 <= code < 0xE000]
    kept = dict.fromkeys(characters, True) | dict.fromkeys(WHITE_SPACE, False)
    at_once = 512
    for start in range(0, len(characters), at_once):
        some = characters[start : start + at_once]
        sent = [{"role": "user", "content": f"{each}a{each}b{each}"} for each in some]
        expected = [f"{each}a{each}b{each}" if kept[each] else f"a{each}b" for each in some]
        assert [message["content"] for message in asked(service, backend, {"messages": sent})] == expected


@rows("spec.message.content", "decisions.input.2", "decisions.input.3")
def test_what_is_blank(service: RunningService, backend: ScriptedBackend) -> None:
    """A text of white space alone is blank; one of zero-width or control characters is not."""
    refused(service, backend, {"prompt": "".join(WHITE_SPACE)}, 422, "messages_required")
    messages = [{"role": "user", "content": each} for each in WHITE_SPACE]
    refused(service, backend, {"messages": messages}, 422, "messages_required")
    for each in ("\u200b", "\ufeff", "\u180e", "\x1f", "\0"):
        assert asked(service, backend, {"prompt": each}) == [{"role": "user", "content": each}]


@rows("decisions.input.3", "decisions.order_of_checks.13", "spec.codes.input_too_large", "spec.limits.total_input_size")
@pytest.mark.parametrize(
    "character", ["x", "é", "م", EMOJI, "\N{COMBINING ACUTE ACCENT}", "\0", "\U0010ffff"], ids=ascii
)
def test_the_largest_prompt(service: RunningService, backend: ScriptedBackend, character: str) -> None:
    """24,000 code points pass, whatever bytes they take, and reach the backend whole; 24,001 are 413."""
    largest = character * INPUT_CHARACTERS_MAX
    assert asked(service, backend, {"prompt": largest}) == [{"role": "user", "content": largest}]
    refused(service, backend, {"prompt": largest + character}, 413, "input_too_large")


@rows("decisions.input.3", "decisions.order_of_checks.13", "spec.codes.input_too_large", "spec.limits.total_input_size")
def test_the_characters_of_all_contents_count_together(service: RunningService, backend: ScriptedBackend) -> None:
    """It is the sum over all roles and messages that may be 24,000 and not one more."""
    messages = [
        {"role": "system", "content": "s" * 7_999},
        {"role": "assistant", "content": "a" * 8_000},
        {"role": "user", "content": "u" * 8_001},
    ]
    assert asked(service, backend, {"messages": messages}) == messages
    refused(service, backend, {"messages": [*messages, {"role": "user", "content": "u"}]}, 413, "input_too_large")


@rows("decisions.order_of_checks.13", "decisions.heads_and_bodies.4")
def test_messages_count(service: RunningService, backend: ScriptedBackend) -> None:
    """512 pass and one more does not. Dropped ones count no further than that 8,192 elements are looked at."""
    many = [{"role": "user", "content": "x"}] * 512
    dropped = [{"role": "tool", "content": "x"}] * (8_192 - 512)
    assert len(asked(service, backend, {"messages": many})) == 512
    assert len(asked(service, backend, {"messages": [*dropped, *many]})) == 512
    refused(service, backend, {"messages": [*many, many[0]]}, 413, "input_too_large")
    refused(service, backend, {"messages": [*many, *dropped, {}]}, 413, "input_too_large")
    refused(service, backend, {"messages": [{}] * 100_000}, 422, "messages_required")


@rows("decisions.input.3", "decisions.order_of_checks.13", "spec.limits.total_input_size")
def test_what_is_trimmed_or_dropped_does_not_count(service: RunningService, backend: ScriptedBackend) -> None:
    """White space at the ends, dropped messages, prompts beside messages and other members are not counted."""
    largest = "x" * INPUT_CHARACTERS_MAX
    space = " \u3000" * 5_000
    dropped = [{"role": "tool", "content": largest}, {"role": "user", "content": space}, largest]
    body = {
        "messages": [*dropped, {"role": "user", "content": space + largest + space, "name": largest}],
        "prompt": largest,
        "user": largest,
    }
    assert asked(service, backend, body) == [{"role": "user", "content": largest}]
    inside = largest[1:] + " " + "x"
    refused(service, backend, {"prompt": inside}, 413, "input_too_large")
