"""Read the body of POST /chat/completions: what is asked of which model, with which settings. Pure.

Rows 10 to 13 of the order of checks, and the section Input, of decisions.md.
"""

from typing import Any, Literal, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tarazu.domain.errors import Error, Refusal

INPUT_CHARACTERS_MAX = 24_000
STOP_SEQUENCES_MAX = 4
SEED_MAX = 2**63 - 1
TOKENS_MAX = 2**31 - 1
"""More than any model writes; a larger `max_tokens` means the same."""
CHARACTERS_PER_TOKEN = 4
WHITE_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
"""Unicode's White_Space property. `str.strip()` alone would also remove U+001C to U+001F, which must pass."""
NO_MODEL = ""
"""Stands for a `model` that is no string: an id that no model has, so that it is answered like any unknown one."""

Role = Literal["system", "user", "assistant"]
ROLES = ("system", "user", "assistant")
PROMPT_MEMBERS = ("prompt", "message", "input")


class Message(Struct, frozen=True):
    """One turn of the conversation; `content` is trimmed and not empty."""

    role: Role
    content: str


class Settings(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The generation settings that were sent and are valid; None: not sent."""

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] | None = None
    seed: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None


class ChatRequest(Struct, frozen=True, kw_only=True):
    """What is asked: `model` as sent (None: the default one), and at least one message."""

    model: str | None
    messages: tuple[Message, ...]
    settings: Settings


class _InvalidBodyError(Exception):
    """Carries the reason why a body is answered 400."""


def read_chat_request(body: bytes) -> ChatRequest | Refusal:
    """Turn a body of at most 1 MiB into a request, or into the first refusal of rows 10 to 13 that applies."""
    try:
        members = _json_object(body)
        if _is_stream(members.get("stream")):
            return Refusal(error=Error.STREAMING_NOT_SUPPORTED)
        settings = _settings(members)
    except _InvalidBodyError as error:
        return Refusal(error=Error.INVALID_REQUEST, message=str(error))
    messages = _messages(members.get("messages")) or _prompt(members)
    if not messages:
        return Refusal(error=Error.MESSAGES_REQUIRED)
    if sum(len(message.content) for message in messages) > INPUT_CHARACTERS_MAX:
        return Refusal(error=Error.INPUT_TOO_LARGE)
    model = members.get("model")
    return ChatRequest(
        model=model if model is None or isinstance(model, str) else NO_MODEL,
        messages=messages,
        settings=settings,
    )


def capped(request: ChatRequest, max_output_tokens: int | None) -> ChatRequest:
    """Hold `max_tokens` under the model's own ceiling, which also stands in where none was sent."""
    asked = request.settings.max_tokens
    if max_output_tokens is None or (asked is not None and asked <= max_output_tokens):
        return request
    return replace(request, settings=replace(request.settings, max_tokens=max_output_tokens))


def estimate_tokens(characters: int) -> int:
    """Estimate the tokens of a text, four characters each, for backends that give no figure."""
    return -(-characters // CHARACTERS_PER_TOKEN)


def _json_object(body: bytes) -> dict[str, Any]:
    try:
        members = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        # The decoder's own words may quote the body; the nesting it takes is bounded by the interpreter's stack.
        raise _InvalidBodyError("The body is not valid JSON in UTF-8.") from None
    if not isinstance(members, dict):
        raise _InvalidBodyError("The body must be a JSON object.")
    return members


def _is_stream(stream: object) -> bool:
    if stream is None or isinstance(stream, bool):
        return bool(stream)
    raise _InvalidBodyError("stream must be true or false.")


def _messages(items: object) -> tuple[Message, ...]:
    """Keep the valid ones, in order; the others are dropped without an error."""
    if not isinstance(items, list):
        return ()
    return tuple(message for message in map(_message, items) if message is not None)


def _message(item: object) -> Message | None:
    if not isinstance(item, dict):
        return None
    role, content = item.get("role"), item.get("content")
    if role not in ROLES or not isinstance(content, str):
        return None
    trimmed = content.strip(WHITE_SPACE)
    return Message(cast("Role", role), trimmed) if trimmed else None


def _prompt(members: dict[str, Any]) -> tuple[Message, ...]:
    """Take the first of prompt, message and input that is a string and not blank."""
    for name in PROMPT_MEMBERS:
        content = members.get(name)
        if isinstance(content, str) and (trimmed := content.strip(WHITE_SPACE)):
            return (Message("user", trimmed),)
    return ()


def _settings(members: dict[str, Any]) -> Settings:
    max_tokens = _tokens(members, "max_tokens")
    max_completion_tokens = _tokens(members, "max_completion_tokens")
    return Settings(
        temperature=_number(members, "temperature", 0, 2),
        top_p=_number(members, "top_p", 0, 1),
        max_tokens=max_tokens if max_completion_tokens is None else max_completion_tokens,
        stop=_stop(members),
        seed=_seed(members),
        presence_penalty=_number(members, "presence_penalty", -2, 2),
        frequency_penalty=_number(members, "frequency_penalty", -2, 2),
    )


def _number(members: dict[str, Any], name: str, least: float, most: float) -> float | None:
    value = members.get(name)
    if value is None or (_is_number(value) and least <= value <= most):
        return value
    raise _InvalidBodyError(f"{name} must be a number from {least} to {most}.")


def _tokens(members: dict[str, Any], name: str) -> int | None:
    value = members.get(name)
    if value is None:
        return None
    if _is_integer(value) and value >= 1:
        return min(int(value), TOKENS_MAX)
    raise _InvalidBodyError(f"{name} must be an integer of at least 1.")


def _seed(members: dict[str, Any]) -> int | None:
    value = members.get("seed")
    if value is None:
        return None
    if _is_integer(value) and -SEED_MAX <= value <= SEED_MAX:
        return int(value)
    raise _InvalidBodyError(f"seed must be an integer from {-SEED_MAX} to {SEED_MAX}.")


def _stop(members: dict[str, Any]) -> tuple[str, ...] | None:
    """Take a string or up to four; an empty string can stop nothing and is left out."""
    value = members.get("stop")
    sequences = [value] if isinstance(value, str) else value
    if sequences is None:
        return None
    if (
        not isinstance(sequences, list)
        or len(sequences) > STOP_SEQUENCES_MAX
        or not all(isinstance(sequence, str) for sequence in sequences)
    ):
        raise _InvalidBodyError(f"stop must be a string or up to {STOP_SEQUENCES_MAX} strings.")
    return tuple(sequence for sequence in sequences if sequence) or None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_integer(value: Any) -> bool:
    """Tell whether it is an integer; 5.0 is one, as in JSON Schema."""
    return _is_number(value) and value == value // 1
