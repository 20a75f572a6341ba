"""Servers of each kind for tests: how they are asked, what they answer, and what a backend makes of it."""

import asyncio
import contextlib
import json
from typing import Any

from msgspec.structs import replace

from tarazu.backends.http_backend import HttpBackend
from tarazu.backends.http_client import HttpClient
from tarazu.backends.port import Reply
from tarazu.backends.secrets import Secrets
from tarazu.domain.catalogue import BackendSpec
from tarazu.domain.prompt import ChatRequest, Message, Settings
from tests.support.patience import PATIENCE_S
from tests.support.values import Clock

PATHS = {"openai": "/chat/completions", "anthropic": "/v1/messages", "gemini": "/models/m:generateContent"}


def openai_answer(text: object = "Hello there.", **choice: object) -> dict[str, Any]:
    """Answer as OpenAI does."""
    message = {"role": "assistant", "content": text, "refusal": None}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_790_000_000,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop", **choice}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
    }


def anthropic_answer(*blocks: dict[str, Any], stop_reason: str = "end_turn", **usage: int) -> dict[str, Any]:
    """Answer as Anthropic does."""
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": list(blocks) or [{"type": "text", "text": "Hello there."}],
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 11, "output_tokens": 7, **usage},
    }


def gemini_answer(*parts: dict[str, Any], finish_reason: str = "STOP", **usage: int) -> dict[str, Any]:
    """Answer as Gemini does."""
    content = {"role": "model", "parts": list(parts) or [{"text": "Hello there."}]}
    return {
        "candidates": [{"content": content, "finishReason": finish_reason, "index": 0}],
        "usageMetadata": {"promptTokenCount": 11, "candidatesTokenCount": 7, "totalTokenCount": 18, **usage},
        "modelVersion": "m",
        "responseId": "r",
    }


ANSWERS = {"openai": openai_answer(), "anthropic": anthropic_answer(), "gemini": gemini_answer()}
"""A good answer of each kind."""


def answer_with(kind: str, text: object) -> bytes:
    """Write the answer of a kind that carries this text."""
    answers = {
        "openai": openai_answer(text),
        "anthropic": anthropic_answer({"type": "text", "text": text}),
        "gemini": gemini_answer({"text": text}),
    }
    return json.dumps(answers[kind]).encode()


def asked(*messages: tuple[str, str], **settings: Any) -> ChatRequest:
    """Ask with these messages, each a role and a content; with none, the user says Hello."""
    said = tuple(Message(role, content) for role, content in messages or (("user", "Hello"),))  # type: ignore[arg-type]  # a test names roles that exist
    return ChatRequest(model=None, messages=said, settings=Settings(**settings))


def ask(spec: BackendSpec, request: ChatRequest | None = None, secrets: Secrets | None = None) -> Reply:
    """Ask a server over HTTP, once."""

    async def call() -> Reply:
        with contextlib.closing(HttpClient()) as http:
            backend = HttpBackend(http, replace(spec, model=spec.model or "m"), Clock(), name="test#1", secrets=secrets)
            return await backend.ask(request or asked(), timeout_s=PATIENCE_S)

    return asyncio.run(call())
