"""Anthropic's Messages API."""

from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tarazu.backends.conversation import Conversation
from tarazu.backends.dialect import Dialect, Draft
from tarazu.backends.replies import tokens
from tarazu.domain.prompt import Message, ResponseFormat, Settings

VERSION = "2023-06-01"
"""Of the API; the one that all servers know. The next one, 2026-10-21, only takes away: `temperature` and `top_p`."""
MAX_TOKENS_DEFAULT = 4_096
"""Where neither the request nor the model bounds the reply: the API wants a bound, and every model takes this one."""
TEMPERATURE_MAX = 1.0
JSON_ONLY = "Reply with one JSON object and nothing else."
CUTS = ("max_tokens", "model_context_window_exceeded")
"""The stop reasons of a reply that there was no room for."""


class _Block(Struct, frozen=True):
    """One of type `text` carries the reply; `thinking` and others are left alone."""

    type: str = ""
    text: str = ""


class _Message(Struct, frozen=True):
    content: list[_Block]
    stop_reason: Any = None
    usage: Any = None


def _fit(settings: Settings) -> Settings:
    """Bound what is larger here than there. Of `temperature` and `top_p`, later models take one; the latest neither."""
    temperature = settings.temperature
    return replace(
        settings,
        temperature=None if temperature is None else min(temperature, TEMPERATURE_MAX),
        top_p=settings.top_p if temperature is None else None,
        max_tokens=settings.max_tokens or MAX_TOKENS_DEFAULT,
    )


def _form(name: str, form: ResponseFormat) -> dict[str, Any]:
    """Ask by the schema; of JSON without one the API knows nothing, and the model is told."""
    if form.schema is None:
        return {"system": JSON_ONLY}
    return {name: {"format": {"type": "json_schema", "schema": form.schema}}}


def _body(model: str, messages: tuple[Message, ...], settings: dict[str, Any]) -> dict[str, Any]:
    conversation = Conversation.of(messages)
    said = [text for text in (conversation.system, settings.get("system")) if text]
    system = {"system": "\n\n".join(said)} if said else {}
    turns = [
        {"role": turn.role, "content": [{"type": "text", "text": text} for text in turn.texts]}
        for turn in conversation.turns
    ]
    return {**settings, **system, "model": model, "messages": turns, "stream": False}


def _read(answer: Any) -> Draft:
    message = msgspec.convert(answer, _Message)
    return Draft(
        text="".join(block.text for block in message.content if block.type == "text"),
        is_refusal=message.stop_reason == "refusal",
        is_cut=message.stop_reason in CUTS,
        is_stopped=message.stop_reason == "stop_sequence",
        prompt_tokens=tokens(
            message.usage,
            "input_tokens",
            plus=("cache_creation_input_tokens", "cache_read_input_tokens"),  # which `input_tokens` leaves out
        ),
        completion_tokens=tokens(message.usage, "output_tokens"),
    )


ANTHROPIC = Dialect(
    url="https://api.anthropic.com",
    path="/v1/messages",
    key_header="X-Api-Key",
    headers={"anthropic-version": VERSION},
    names={
        "temperature": "temperature",
        "top_p": "top_p",
        "max_tokens": "max_tokens",
        "stop": "stop_sequences",
        "response_format": "output_config",
    },
    form=_form,
    fit=_fit,
    body=_body,
    read=_read,
)
