"""The schema of what POST /chat/completions takes: exactly as lenient as `tarazu.domain.prompt` reads it.

A member of a wrong type is refused where decisions.md says so and ignored where it says so; a test compares the two.
Only two rules are beyond a schema: the 24,000 characters over all contents, counted after trimming, and which models
a key may use.
"""

from tarazu.api.contract.schemas import reference
from tarazu.api.contract.structure import Schema
from tarazu.domain.prompt import (
    FORMAT_DESCRIPTION_MAX,
    FORMAT_NAME,
    INPUT_CHARACTERS_MAX,
    MESSAGES_MAX,
    PROMPT_MEMBERS,
    RESPONSE_FORMAT_BYTES_MAX,
    ROLES,
    SEED_MAX,
    STOP_CHARACTERS_MAX,
    STOP_SEQUENCES_MAX,
    WHITE_SPACE,
)

CHAT_REQUEST = "ChatRequest"
CHAT_MESSAGE = "ChatMessage"

_NOT_BLANK = "[^" + "".join(f"\\u{ord(character):04x}" for character in WHITE_SPACE) + "]"


def request_schemas() -> dict[str, Schema]:
    """Make the schemas of the request and its messages, by name."""
    return {CHAT_REQUEST: _chat_request(), CHAT_MESSAGE: _chat_message()}


def _chat_request() -> Schema:
    return {
        "title": CHAT_REQUEST,
        "description": (
            "What to reply to, and how. At least one valid message in `messages`, or one text in `prompt`, `message` "
            "or `input`, must be there. Members that are not listed are ignored, and told in a header."
        ),
        "type": "object",
        "properties": _input_members() | _settings(),
        "anyOf": [_with_messages(), *map(_with_prompt, PROMPT_MEMBERS)],
    }


def _chat_message() -> Schema:
    return {
        "title": CHAT_MESSAGE,
        "description": "One turn of the conversation. Other members are ignored.",
        "type": "object",
        "properties": {
            "role": {
                "description": "`system` sets how to reply, `user` is user input, `assistant` marks earlier replies.",
                "enum": list(ROLES),
            },
            "content": {
                "description": (
                    "Text that is not blank, or an array of text parts alone, whose texts are joined by newlines. "
                    "White space at both ends is removed."
                ),
                "anyOf": [_text("A text."), _parts()],
            },
        },
        "required": ["role", "content"],
    }


def _parts() -> Schema:
    part = {
        "type": "object",
        "properties": {"type": {"const": "text"}, "text": {"type": "string"}},
        "required": ["type", "text"],
    }
    not_blank = {"properties": {"text": {"pattern": _NOT_BLANK}}}
    return {"description": "Text parts.", "type": "array", "items": part, "contains": not_blank}


def _text(description: str) -> Schema:
    return {"description": description, "type": "string", "pattern": _NOT_BLANK}


def _with_messages() -> Schema:
    messages = {"type": "array", "contains": reference(CHAT_MESSAGE)}
    return {"title": "With messages", "required": ["messages"], "properties": {"messages": messages}}


def _with_prompt(name: str) -> Schema:
    text = {"type": "string", "pattern": _NOT_BLANK}
    return {"title": f"With {name}", "required": [name], "properties": {name: text}}


def _input_members() -> dict[str, Schema]:
    return {
        "model": {
            "description": (
                "An `id` from GET /models. Left out or null: the default model if the key may use it, else the first "
                "usable one."
            ),
            "type": ["string", "null"],
        },
        "messages": {
            "description": (
                f"The conversation, in order. Wins over `prompt` when it holds a valid {CHAT_MESSAGE}; elements that "
                "are not valid are dropped, and anything but an array counts as absent. All contents together may "
                f"hold {INPUT_CHARACTERS_MAX:,} characters, in at most {MESSAGES_MAX:,} messages."
            ),
        },
        "prompt": {
            "description": "A single user message, instead of `messages`. Blank text, or no text, counts as absent.",
        },
        "message": {"description": "Alias of `prompt`, looked at when `prompt` is absent."},
        "input": {"description": "Alias of `prompt`, looked at when `message` is absent too."},
        "stream": {
            "description": "Streaming is off in v1: true is answered with `streaming_not_supported`.",
            "enum": [False, None],
        },
    }


def _settings() -> dict[str, Schema]:
    at_least_one = {"type": ["integer", "null"], "minimum": 1}
    penalty = {"type": ["number", "null"], "minimum": -2, "maximum": 2}
    return {
        "temperature": {
            "description": "How freely the model chooses its words; 0 is the most predictable.",
            "type": ["number", "null"],
            "minimum": 0,
            "maximum": 2,
        },
        "top_p": {
            "description": "Choose only among the likeliest words that have this probability together.",
            "type": ["number", "null"],
            "minimum": 0,
            "maximum": 1,
        },
        "max_tokens": {
            "description": "Most tokens of the reply. The model's own ceiling caps it.",
            **at_least_one,
        },
        "max_completion_tokens": {"description": "Newer name of `max_tokens`; wins over it.", **at_least_one},
        "stop": {
            "description": f"Text that ends the reply where it appears, or up to {STOP_SEQUENCES_MAX} of them.",
            "type": ["string", "array", "null"],
            "items": {"type": "string", "maxLength": STOP_CHARACTERS_MAX},
            "maxLength": STOP_CHARACTERS_MAX,
            "maxItems": STOP_SEQUENCES_MAX,
        },
        "seed": {
            "description": "Asks the model to repeat itself for the same request.",
            "type": ["integer", "null"],
            "format": "int64",
            "minimum": -SEED_MAX,
            "maximum": SEED_MAX,
        },
        "presence_penalty": {"description": "Above 0: rather new topics.", **penalty},
        "frequency_penalty": {"description": "Above 0: fewer repetitions.", **penalty},
        "response_format": {
            "description": (
                f"JSON as the form of the reply, {RESPONSE_FORMAT_BYTES_MAX:,} bytes at most. A model whose "
                "capabilities lack `json_output` replies in text all the same, and `X-Ignored-Parameters` says so."
            ),
            "type": ["object", "null"],
            "properties": {
                "type": {"enum": ["text", "json_object", "json_schema"]},
                "json_schema": {"description": "With the type `json_schema`: what the reply is to be."},
            },
            "required": ["type"],
            "if": {"type": "object", "properties": {"type": {"const": "json_schema"}}, "required": ["type"]},
            "then": {
                "required": ["json_schema"],
                "properties": {
                    "json_schema": {
                        "type": "object",
                        "properties": {
                            "name": {"type": "string", "pattern": FORMAT_NAME},
                            "schema": {"description": "A JSON Schema.", "type": ["object", "null"]},
                            "strict": {"type": ["boolean", "null"]},
                            "description": {"type": ["string", "null"], "maxLength": FORMAT_DESCRIPTION_MAX},
                        },
                        "required": ["name"],
                    }
                },
            },
        },
    }
