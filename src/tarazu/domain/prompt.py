"""Read the body of POST /chat/completions: what is asked of which model, with which settings. Pure.

Rows 10 to 13 of the order of checks, and the section Input, of decisions.md.
"""

import re
from collections.abc import Callable
from itertools import islice
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Raw, Struct
from msgspec.json import Decoder
from msgspec.structs import replace

from tarazu.domain.errors import NOTHING, PARAMETERS_TOLD_MAX, Error, PassedOver, Refusal

INPUT_CHARACTERS_MAX = 24_000
MESSAGES_MAX = 512
ITEMS_MAX = 8_192
"""Elements of `messages` that are looked at, valid or not."""
STOP_SEQUENCES_MAX = 4
STOP_CHARACTERS_MAX = 256
SEED_MAX = 2**63 - 1
TOKENS_MAX = 2**31 - 1
"""More than any model writes; a larger `max_tokens` means the same."""
RESPONSE_FORMAT_BYTES_MAX = 65_536
FORMAT_NAME = "^[a-zA-Z0-9_-]{1,64}$"
FORMAT_DESCRIPTION_MAX = 1_024
RANGES = {"temperature": (0, 2), "top_p": (0, 1), "presence_penalty": (-2, 2), "frequency_penalty": (-2, 2)}
"""The settings that are numbers, each with its least and its most."""
CHARACTERS_PER_TOKEN = 4
WHITE_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
"""Unicode's White_Space property. `str.strip()` alone would also remove U+001C to U+001F, which must pass."""
NO_MODEL = ""
"""Stands for a `model` that is no string: an id that no model has, so that it is answered like any unknown one."""

_NULL = Raw(b"null")

ValueT = TypeVar("ValueT")
Role = Literal["system", "user", "assistant"]
ROLES = ("system", "user", "assistant")
PROMPT_MEMBERS = ("prompt", "message", "input")


class Message(Struct, frozen=True):
    """One turn of the conversation; `content` is trimmed and not empty."""

    role: Role
    content: str


class ResponseFormat(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """JSON as the form of the reply: any object, or with a `name` what this JSON Schema describes."""

    name: str = ""
    schema: Raw | None = None
    strict: bool | None = None
    description: str | None = None


class Settings(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The generation settings that were sent and are valid; None: not sent."""

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] | None = None
    seed: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    response_format: ResponseFormat | None = None


_SETTINGS = frozenset({*Settings.__struct_fields__, "max_completion_tokens"})
_MEMBERS = _SETTINGS | {"model", "messages", *PROMPT_MEMBERS, "stream"}
UNREAD_LOOKED_AT_MAX = 256
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}", re.ASCII)
"""What a header can carry: names with commas, spaces or letters beyond ASCII are not told."""
_NO_SETTINGS = Settings()


class ChatRequest(Struct, frozen=True, kw_only=True):
    """What is asked: `model` as sent (None: the default one), and at least one message."""

    model: str | None
    messages: tuple[Message, ...]
    settings: Settings
    passed_over: PassedOver = NOTHING


class _WrittenFormat(Struct, frozen=True):
    """A form of the reply, as it is written."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: Raw = _NULL


class _WrittenSchema(Struct, frozen=True):
    """A schema of the reply, as it is written."""

    name: Annotated[str, Meta(pattern=FORMAT_NAME)]
    schema: Raw = _NULL
    strict: bool | None = None
    description: Annotated[str, Meta(max_length=FORMAT_DESCRIPTION_MAX)] | None = None


class _Written(Struct, frozen=True):
    """A message as it is written: of members that are written twice the last; others are ignored."""

    role: Raw = _NULL
    content: Raw = _NULL


class _Part(Struct, frozen=True):
    """A part of a content, as it is written."""

    type: Raw = _NULL
    text: Raw = _NULL


class _InvalidBodyError(Exception):
    """Carries the reason why a body is answered 400."""


_members_of = Decoder(dict[str, Raw]).decode
_items_of = Decoder(list[Raw]).decode
_written_of = Decoder(_Written).decode
_role_of: Callable[[Raw], Role] = Decoder(Role).decode
_text_of = Decoder(str).decode
_parts_of = Decoder(list[_Part]).decode
_text_type: Callable[[Raw], str] = Decoder(Literal["text"]).decode
_flag = Decoder(bool | None).decode
_number_of = Decoder(int | float | None).decode
_format_of = Decoder(_WrittenFormat).decode
_schema_of = Decoder(_WrittenSchema).decode
_object_of = Decoder(dict[str, Any]).decode
_stop_of = Decoder(str | list[str] | None).decode


def read_chat_request(body: bytes) -> ChatRequest | Refusal:
    """Turn a body of at most 1 MiB into a request, or into the first refusal of rows 10 to 13 that applies."""
    try:
        members = _json_object(body)
        if "stream" in members and _is_stream(members["stream"]):
            return Refusal(error=Error.STREAMING_NOT_SUPPORTED)
        settings = _NO_SETTINGS if _SETTINGS.isdisjoint(members) else _settings(members)
    except _InvalidBodyError as error:
        return Refusal(error=Error.INVALID_REQUEST, message=str(error))
    items = _items(members)
    valid = _messages(items)
    dropped, is_read = len(items) - len(valid), _MEMBERS.issuperset(members)
    passed_over = NOTHING if is_read and not dropped else PassedOver(dropped, () if is_read else _unread(members))
    messages = valid or _prompt(members)
    if not messages:
        return Refusal(error=Error.MESSAGES_REQUIRED, passed_over=passed_over)
    if len(messages) > MESSAGES_MAX or len(items) > ITEMS_MAX:
        return Refusal(error=Error.INPUT_TOO_LARGE)
    if sum(len(message.content) for message in messages) > INPUT_CHARACTERS_MAX:
        return Refusal(error=Error.INPUT_TOO_LARGE, passed_over=passed_over)
    return ChatRequest(model=_model(members), messages=messages, settings=settings, passed_over=passed_over)


def without_format(request: ChatRequest) -> ChatRequest:
    """Leave the form of the reply out, for a model that cannot be asked for one."""
    return replace(request, settings=replace(request.settings, response_format=None))


def capped(request: ChatRequest, max_output_tokens: int | None) -> ChatRequest:
    """Hold `max_tokens` under the model's own ceiling, which also stands in where none was sent."""
    asked = request.settings.max_tokens
    if max_output_tokens is None or (asked is not None and asked <= max_output_tokens):
        return request
    return replace(request, settings=replace(request.settings, max_tokens=max_output_tokens))


def estimate_tokens(characters: int) -> int:
    """Estimate the tokens of a text, four characters each, for backends that give no figure."""
    return -(-characters // CHARACTERS_PER_TOKEN)


def _json_object(body: bytes) -> dict[str, Raw]:
    """Take the members of the body apart, and leave each as it is written: what is ignored is never made."""
    try:
        body.decode()  # what is left as it is written is not looked at so closely
        return _members_of(body)
    except msgspec.ValidationError:
        raise _InvalidBodyError("The body must be a JSON object.") from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        # The decoder's own words may quote the body; the nesting it takes is bounded by the interpreter's stack.
        raise _InvalidBodyError("The body is not valid JSON in UTF-8.") from None


def _is_stream(member: Raw) -> bool:
    stream = _read(_flag, member, "stream must be true or false.")
    return bool(stream)


def _items(members: dict[str, Raw]) -> list[Raw]:
    """Take the array of messages apart; anything but an array counts as absent."""
    try:
        return _items_of(members["messages"]) if "messages" in members else []
    except msgspec.ValidationError:
        return []


def _messages(items: list[Raw]) -> tuple[Message, ...]:
    """Keep the valid ones, in order; the others are dropped without an error. Of too many, enough to tell."""
    found = (message for item in islice(items, ITEMS_MAX) if (message := _message(item)) is not None)
    return tuple(islice(found, MESSAGES_MAX + 1))


def _message(item: Raw) -> Message | None:
    try:
        written = _written_of(item)
        role = _role_of(written.role)
        try:
            text = _text_of(written.content)
        except msgspec.ValidationError:
            text = _joined(written.content)
    except msgspec.ValidationError:
        return None
    trimmed = text.strip(WHITE_SPACE)
    return Message(role, trimmed) if trimmed else None


def _joined(content: Raw) -> str:
    """Join the texts of parts by newlines.

    Raises:
        ValidationError: there is a part of another kind.
    """
    parts = _parts_of(content)
    for part in parts:
        _text_type(part.type)
    return "\n".join([_text_of(part.text) for part in parts])


def _unread(members: dict[str, Raw]) -> tuple[str, ...]:
    """Name members that nobody reads, as many as are told; null counts as omitted."""
    names = (name for name, value in members.items() if name not in _MEMBERS and value != _NULL)
    told = (name for name in islice(names, UNREAD_LOOKED_AT_MAX) if _NAME.fullmatch(name))
    return tuple(sorted(islice(told, PARAMETERS_TOLD_MAX)))


def _prompt(members: dict[str, Raw]) -> tuple[Message, ...]:
    """Take the first of prompt, message and input that is a string and not blank."""
    for name in PROMPT_MEMBERS:
        if name in members and (trimmed := (_text_or_none(members[name]) or "").strip(WHITE_SPACE)):
            return (Message("user", trimmed),)
    return ()


def _model(members: dict[str, Raw]) -> str | None:
    """Tell the model that is asked for; None where there is no such member, or it is null."""
    if "model" not in members or members["model"] == _NULL:
        return None
    model = _text_or_none(members["model"])
    return NO_MODEL if model is None else model


def _text_or_none(member: Raw) -> str | None:
    try:
        return _text_of(member)
    except msgspec.ValidationError:
        return None


def _settings(members: dict[str, Raw]) -> Settings:
    max_tokens = _tokens(members, "max_tokens")
    max_completion_tokens = _tokens(members, "max_completion_tokens")
    return Settings(
        temperature=_number(members, "temperature"),
        top_p=_number(members, "top_p"),
        max_tokens=max_tokens if max_completion_tokens is None else max_completion_tokens,
        stop=_stop(members),
        seed=_seed(members),
        presence_penalty=_number(members, "presence_penalty"),
        frequency_penalty=_number(members, "frequency_penalty"),
        response_format=_response_format(members),
    )


def _number(members: dict[str, Raw], name: str) -> float | None:
    least, most = RANGES[name]
    fault = f"{name} must be a number from {least} to {most}."
    value = _read(_number_of, members.get(name), fault)
    if value is None or least <= value <= most:
        return value
    raise _InvalidBodyError(fault)


def _tokens(members: dict[str, Raw], name: str) -> int | None:
    fault = f"{name} must be an integer of at least 1."
    value = _read(_number_of, members.get(name), fault)
    if value is None:
        return None
    if _is_integer(value) and value >= 1:
        return min(int(value), TOKENS_MAX)
    raise _InvalidBodyError(fault)


def _seed(members: dict[str, Raw]) -> int | None:
    fault = f"seed must be an integer from {-SEED_MAX} to {SEED_MAX}."
    value = _read(_number_of, members.get("seed"), fault)
    if value is None:
        return None
    if _is_integer(value) and -SEED_MAX <= value <= SEED_MAX:
        return int(value)
    raise _InvalidBodyError(fault)


def _response_format(members: dict[str, Raw]) -> ResponseFormat | None:
    """Take the form of the reply; text is what every reply is, and needs no asking."""
    member = members.get("response_format")
    if member is None or member == _NULL:
        return None
    fault = (
        "response_format must have the type text, json_object or json_schema; the last with json_schema, an object of "
        "a name (letters, digits, _ and -, 64 at most) and a schema."
    )
    if len(member) > RESPONSE_FORMAT_BYTES_MAX:
        raise _InvalidBodyError(f"response_format must be at most {RESPONSE_FORMAT_BYTES_MAX:,} bytes.")
    try:
        written = _format_of(member)
        if written.type != "json_schema":
            return ResponseFormat() if written.type == "json_object" else None
        schema = _schema_of(written.json_schema)
        if schema.schema != _NULL:
            _object_of(schema.schema)
    except (msgspec.MsgspecError, RecursionError):
        raise _InvalidBodyError(fault) from None
    return ResponseFormat(
        name=schema.name,
        schema=None if schema.schema == _NULL else schema.schema,
        strict=schema.strict,
        description=schema.description,
    )


def _stop(members: dict[str, Raw]) -> tuple[str, ...] | None:
    """Take a string or up to four; an empty string can stop nothing and is left out."""
    fault = f"stop must be a string or up to {STOP_SEQUENCES_MAX}, of at most {STOP_CHARACTERS_MAX} characters each."
    value = _read(_stop_of, members.get("stop"), fault)
    sequences = [value] if isinstance(value, str) else value
    if sequences is None:
        return None
    if len(sequences) > STOP_SEQUENCES_MAX or any(len(sequence) > STOP_CHARACTERS_MAX for sequence in sequences):
        raise _InvalidBodyError(fault)
    return tuple(sequence for sequence in sequences if sequence) or None


def _read(decode: Callable[[Raw], ValueT | None], member: Raw | None, fault: str) -> ValueT | None:
    """Read a member of a type; None where it is null or not there."""
    try:
        return None if member is None else decode(member)
    except msgspec.ValidationError:
        raise _InvalidBodyError(fault) from None


def _is_integer(value: float) -> bool:
    """Tell whether it is an integer; 5.0 is one, as in JSON Schema."""
    return value == value // 1
