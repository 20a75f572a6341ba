"""OpenAI's chat completions, which most model servers speak; the embedded model is one of them."""

from typing import Any

import msgspec
from msgspec import Struct

from tarazu.backends.dialect import Dialect, Draft
from tarazu.backends.replies import tokens
from tarazu.domain.prompt import Message, ResponseFormat


class _Message(Struct, frozen=True):
    """Reasoning stands in members of its own, such as `reasoning_content`, which are not read."""

    content: str | None = None
    refusal: Any = None


class _Choice(Struct, frozen=True):
    message: _Message
    finish_reason: Any = None


class _Completion(Struct, frozen=True):
    choices: list[Any]
    usage: Any = None


def _form(name: str, form: ResponseFormat) -> dict[str, Any]:
    if not form.name:
        return {name: {"type": "json_object"}}
    return {name: {"type": "json_schema", "json_schema": form}}


def _body(model: str, messages: tuple[Message, ...], settings: dict[str, Any]) -> dict[str, Any]:
    return {**settings, "model": model, "messages": messages, "stream": False}


def _read(answer: Any) -> Draft:
    completion = msgspec.convert(answer, _Completion)
    choice = msgspec.convert(completion.choices[0], _Choice)
    return Draft(
        text=choice.message.content or "",
        is_refusal=bool(choice.message.refusal) or choice.finish_reason == "content_filter",
        is_cut=choice.finish_reason == "length",
        is_stopped=choice.finish_reason == "stop",
        prompt_tokens=tokens(completion.usage, "prompt_tokens"),
        completion_tokens=tokens(completion.usage, "completion_tokens"),
    )


OPENAI = Dialect(
    url=None,  # a forgotten url must not take prompts and another's key to OpenAI
    path="/chat/completions",
    key_header="Authorization",
    names={
        "temperature": "temperature",
        "top_p": "top_p",
        "max_tokens": "max_tokens",
        "stop": "stop",
        "seed": "seed",
        "presence_penalty": "presence_penalty",
        "frequency_penalty": "frequency_penalty",
        "response_format": "response_format",
    },
    form=_form,
    body=_body,
    read=_read,
)
