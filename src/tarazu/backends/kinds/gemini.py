"""Google's Gemini API: generateContent."""

from typing import Any

import msgspec
from msgspec import Struct

from tarazu.backends.conversation import Conversation
from tarazu.backends.dialect import Dialect, Draft
from tarazu.backends.replies import tokens
from tarazu.domain.prompt import Message, ResponseFormat

ROLES = {"user": "user", "assistant": "model"}
REFUSALS = (
    "BLOCKLIST",
    "ESCALATION",
    "LANGUAGE",
    "MODEL_ARMOR",
    "PROHIBITED_CONTENT",
    "RECITATION",
    "SAFETY",
    "SPII",
)
"""The finish reasons of a filter, not of a fault."""


class _Part(Struct, frozen=True):
    text: str = ""
    thought: Any = None


class _Content(Struct, frozen=True):
    parts: list[_Part] = []


class _Candidate(Struct, frozen=True, rename="camel"):
    content: _Content = _Content()
    finish_reason: Any = None


class _PromptFeedback(Struct, frozen=True, rename="camel"):
    block_reason: Any = None


class _Response(Struct, frozen=True, rename="camel"):
    candidates: list[Any] = []
    prompt_feedback: _PromptFeedback | None = None
    usage_metadata: Any = None


def _form(name: str, form: ResponseFormat) -> dict[str, Any]:
    return {"responseMimeType": "application/json"} | ({} if form.schema is None else {name: form.schema})


def _body(model: str, messages: tuple[Message, ...], settings: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG001 - the path names the model
    conversation = Conversation.of(messages)
    body: dict[str, Any] = {
        "contents": [
            {"role": ROLES[turn.role], "parts": [{"text": text} for text in turn.texts]} for turn in conversation.turns
        ]
    }
    if conversation.system:
        body["systemInstruction"] = {"parts": [{"text": conversation.system}]}
    if settings:
        body["generationConfig"] = settings
    return body


def _read(answer: Any) -> Draft:
    response = msgspec.convert(answer, _Response)
    if response.prompt_feedback is not None and response.prompt_feedback.block_reason and not response.candidates:
        return Draft(text="", is_refusal=True)
    candidate = msgspec.convert(response.candidates[0], _Candidate)
    return Draft(
        text="".join(part.text for part in candidate.content.parts if not part.thought),
        is_refusal=candidate.finish_reason in REFUSALS,
        is_cut=candidate.finish_reason == "MAX_TOKENS",
        is_stopped=candidate.finish_reason == "STOP",
        prompt_tokens=tokens(response.usage_metadata, "promptTokenCount"),
        # Thinking is output here as it is with the others, which count it in.
        completion_tokens=tokens(response.usage_metadata, "candidatesTokenCount", plus=("thoughtsTokenCount",)),
    )


GEMINI = Dialect(
    url="https://generativelanguage.googleapis.com/v1beta",
    path="/models/{model}:generateContent",
    key_header="X-Goog-Api-Key",
    names={
        "temperature": "temperature",
        "top_p": "topP",
        "max_tokens": "maxOutputTokens",
        "stop": "stopSequences",
        "seed": "seed",
        "presence_penalty": "presencePenalty",
        "frequency_penalty": "frequencyPenalty",
        "response_format": "responseJsonSchema",
    },
    form=_form,
    body=_body,
    read=_read,
)
