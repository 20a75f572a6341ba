"""The ways in which a backend fails, for each kind of server: what it does, and what that is called."""

import asyncio
import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from msgspec import Struct

from tarazu.backends.http_client import NO_ANSWER, REPLY_BYTES_MAX
from tarazu.backends.kinds import KINDS
from tarazu.backends.pool import AGAIN, AGAIN_TRIES_MAX
from tarazu.backends.port import Fault
from tests.support.backend import (
    FILLER,
    Behaviour,
    Exchange,
    answers,
    closes_in_body,
    resets,
    resets_in_body,
    stalls,
    stalls_in_body,
)
from tests.support.dialects import ANSWERS, answer_with, anthropic_answer, gemini_answer, openai_answer
from tests.support.service import BACKEND_KEY

CANARY = "canary-4b1d"
"""What a backend says with its refusals. The caller must not see it, nor the log."""
PROMPT = "prompt-canary-9c2e"
LARGE_BYTES = 50 * 1024 * 1024
NO_TOKENS = (-5, 2**70)
"""Figures that no reply has."""


class Row(Struct, frozen=True, kw_only=True):
    """One way to fail: what it is called in the log, and how to bring it about.

    Behaviours are those of a server that is reached; `place` names an address where none is. `tries` are those of the
    backend that is alone, where the fault does not tell.
    """

    fault: Fault | None
    detail: str | None = None
    behaviours: dict[str, Behaviour] = {}
    place: str = "server"
    stalls: bool = False
    tries: int | None = None

    @property
    def tries_alone(self) -> int:
        """How often the backend is asked for one request when there is no other."""
        return self.tries or (AGAIN_TRIES_MAX if self.fault in AGAIN else 1)


def _all(behaviour: Behaviour) -> dict[str, Behaviour]:
    return dict.fromkeys(KINDS, behaviour)


def _bodies(openai: Any, anthropic: Any, gemini: Any) -> dict[str, Behaviour]:
    bodies = {"openai": openai, "anthropic": anthropic, "gemini": gemini}
    return {kind: answers(json.dumps(body).encode()) for kind, body in bodies.items()}


def _texts(text: object) -> dict[str, Behaviour]:
    return {kind: answers(answer_with(kind, text)) for kind in KINDS}


def refuses(status: int, **headers: str) -> dict[str, Behaviour]:
    """Refuse with everything in it that must not come through."""

    async def behave(exchange: Exchange) -> None:
        message = f"{CANARY}: {BACKEND_KEY} refused at {exchange.received.headers['host']} for {PROMPT}"
        error = {"error": {"code": CANARY, "type": CANARY, "status": CANARY, "message": message}}
        await exchange.send(status, json.dumps(error).encode(), set_cookie=f"session={CANARY}", **headers)

    return _all(behave)


@contextmanager
def full() -> Iterator[str]:
    """Listen where nobody is let in any more: who comes waits to be connected."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener, ExitStack() as stack:
        for _ in range(3):
            before = stack.enter_context(socket.socket())
            before.settimeout(0)
            before.connect_ex(listener.getsockname())
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def together(behave: Behaviour, meeting: asyncio.Barrier) -> Behaviour:
    """Behave so once all that are to meet are there."""

    async def behave_together(exchange: Exchange) -> None:
        await meeting.wait()
        await behave(exchange)

    return behave_together


async def _stalls_in_head(exchange: Exchange) -> None:
    exchange.writer.write(b"HTTP/1.1 200 X\r\ncontent-type: ")
    await exchange.gone


async def _closes(exchange: Exchange) -> None:
    exchange.writer.close()


async def _sends_a_lot(exchange: Exchange) -> None:
    await exchange.send_part(200, b'{"choices": [', LARGE_BYTES)
    for _ in range(LARGE_BYTES // len(FILLER)):
        exchange.writer.write(FILLER)
        await exchange.writer.drain()


ROWS: dict[str, Row] = {
    "refused": Row(fault=Fault.UNREACHABLE, place="refused"),
    "no-such-name": Row(fault=Fault.UNREACHABLE, place="no such name"),
    "unknown-authority": Row(fault=Fault.UNREACHABLE, place="unknown authority"),
    "expired": Row(fault=Fault.UNREACHABLE, place="expired"),
    "another-host": Row(fault=Fault.UNREACHABLE, place="another host"),
    "reset": Row(fault=Fault.UNREACHABLE, behaviours=_all(resets)),
    "closed": Row(fault=Fault.UNREACHABLE, behaviours=_all(_closes)),
    "reset-in-body": Row(fault=Fault.UNREACHABLE, behaviours=_all(resets_in_body)),
    "closed-in-body": Row(fault=Fault.UNREACHABLE, behaviours=_all(closes_in_body)),
    "stall-in-connect": Row(fault=Fault.TIMEOUT, detail=NO_ANSWER, place="full", stalls=True),
    "stall": Row(fault=Fault.TIMEOUT, detail=NO_ANSWER, behaviours=_all(stalls), stalls=True),
    "stall-in-head": Row(fault=Fault.TIMEOUT, detail=NO_ANSWER, behaviours=_all(_stalls_in_head), stalls=True),
    "stall-in-body": Row(fault=Fault.TIMEOUT, detail=NO_ANSWER, behaviours=_all(stalls_in_body), stalls=True),
    "html": Row(
        fault=Fault.INVALID_REPLY, behaviours=_all(answers(f"<p>{CANARY}</p>".encode(), content_type="text/html"))
    ),
    "half-json": Row(
        fault=Fault.INVALID_REPLY,
        behaviours={kind: answers(json.dumps(answer).encode()[:-5]) for kind, answer in ANSWERS.items()},
    ),
    "nothing-in-it": Row(
        fault=Fault.INVALID_REPLY, behaviours=_bodies({"choices": []}, {"content": []}, {"candidates": []})
    ),
    "null": Row(fault=Fault.INVALID_REPLY, behaviours=_texts(None)),
    "blank": Row(fault=Fault.INVALID_REPLY, behaviours=_texts(" \u2003\n")),
    "too-large": Row(
        fault=Fault.INVALID_REPLY, detail=f"more than {REPLY_BYTES_MAX} bytes", behaviours=_all(_sends_a_lot)
    ),
    "refusal": Row(
        fault=Fault.REFUSAL,
        behaviours=_bodies(
            openai_answer(message={"role": "assistant", "content": None, "refusal": CANARY}),
            anthropic_answer({"type": "text", "text": ""}, stop_reason="refusal"),
            gemini_answer({"text": ""}, finish_reason="SAFETY"),
        ),
    ),
    "blocked": Row(
        fault=Fault.REFUSAL,
        behaviours=_bodies(
            openai_answer("", finish_reason="content_filter"),
            {"content": [], "stop_reason": "refusal"},
            {"promptFeedback": {"blockReason": "SAFETY", "blockReasonMessage": CANARY}},
        ),
    ),
    "cut-to-nothing": Row(
        fault=Fault.REQUEST_REFUSED,
        behaviours=_bodies(
            openai_answer("", finish_reason="length"),
            anthropic_answer({"type": "thinking"}, stop_reason="max_tokens"),
            gemini_answer({"text": "", "thought": True}, finish_reason="MAX_TOKENS"),
        ),
    ),
    "no-tokens": Row(
        fault=None,
        behaviours=_bodies(
            {**openai_answer(), "usage": dict(zip(("prompt_tokens", "completion_tokens"), NO_TOKENS, strict=True))},
            {**anthropic_answer(), "usage": dict(zip(("input_tokens", "output_tokens"), NO_TOKENS, strict=True))},
            {
                **gemini_answer(),
                "usageMetadata": dict(zip(("promptTokenCount", "candidatesTokenCount"), NO_TOKENS, strict=True)),
            },
        ),
    ),
    "usage-a-text": Row(
        fault=None,
        behaviours=_bodies(
            {**openai_answer(), "usage": CANARY},
            {**anthropic_answer(), "usage": CANARY},
            {**gemini_answer(), "usageMetadata": CANARY},
        ),
    ),
    **{
        str(status): Row(fault=fault, detail=str(status), behaviours=refuses(status))
        for fault, statuses in {
            Fault.REQUEST_REFUSED: (400, 413, 422),
            Fault.KEY_REFUSED: (401, 402, 403),
            Fault.STATUS: (404, 408, 409, 500, 502, 503, 529),
        }.items()
        for status in statuses
    },
    **{
        f"{status}-later": Row(
            fault=Fault.BUSY, detail=str(status), behaviours=refuses(status, retry_after="77"), tries=1
        )
        for status in (429, 503, 529)
    },
    "429-at-once": Row(fault=Fault.BUSY, detail="429", behaviours=refuses(429, retry_after="0")),
    "301": Row(fault=Fault.STATUS, detail="301"),  # its behaviour knows the other host
}
