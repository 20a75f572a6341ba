"""A server that answers like the API, as a test tells it: for the callers' side of `tarazu chat`."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from msgspec import Struct

from tarazu.domain.keys import ENTROPY_BYTES, mint
from tests.support.patience import PATIENCE_S

KEY = mint(b"k" * ENTROPY_BYTES).text
"""A well-formed key; the scripted server takes any."""


class Answered(Struct, frozen=True):
    """One answer to send."""

    status: int
    body: bytes
    headers: dict[str, str] = {}


def reply(content: str, **usage: object) -> Answered:
    """A chat completion, from the model that was asked."""
    return as_json(
        200,
        {
            "id": "chatcmpl_1",
            "object": "chat.completion",
            "created": 1,
            "model": "test/one",
            "choices": [
                {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"},
            ],
            "usage": {
                "prompt_tokens": 1,
                "completion_tokens": 2,
                "total_tokens": 3,
                "credits": 2,
                "billing_source": "plan",
                **usage,
            },
        },
    )


def error(status: int, code: str, message: str = "Said by the server.", **headers: str) -> Answered:
    """A domain error without details."""
    return detailed(status, code, message, {}, **headers)


def detailed(status: int, code: str, message: str, details: dict[str, Any], **headers: str) -> Answered:
    """A domain error."""
    return as_json(status, {"error": {"code": code, "message": message, "details": details}}, **headers)


def as_json(status: int, body: object, **headers: str) -> Answered:
    """Any JSON answer; `retry_after` becomes the header Retry-After."""
    return Answered(status, json.dumps(body).encode(), {name.replace("_", "-"): text for name, text in headers.items()})


USAGE = {
    "object": "usage",
    "plan": "basic",
    "period": "2026-03",
    "api_credits": {"used": 30, "limit": 1_000, "remaining": 970},
    "pay_as_you_go": {"balance": 2_500},
    "rate_limit": {"limit_per_minute": 60, "remaining": 59, "resets_at": "2026-03-01T10:01:00Z"},
    "key": {"id": "key_1", "name": "laptop"},
}
MODEL = {
    "id": "test/one",
    "object": "model",
    "display_name": "Test One",
    "provider": "test",
    "type": "chat",
    "description": "",
    "credits_per_request": 2,
    "capabilities": dict.fromkeys(("chat", "reasoning", "vision", "streaming", "tools", "json_output"), False),
    "pricing": {"billing_unit": "request", "credits": 2, "payg_amount": 300, "currency": "IRT"},
    "available": True,
    "status": "available",
}


class ScriptedApi:
    """What the server answers, and what it was asked. Completions come from `replies`, in order."""

    def __init__(self) -> None:
        self.url = ""
        self.replies: list[Answered] = []
        self.usage = as_json(200, USAGE)
        self.models = as_json(200, {"object": "list", "data": [MODEL]})
        self.asked: list[dict[str, Any]] = []
        self.authorizations: set[str | None] = set()
        self.paths: list[str] = []
        self.go_on = threading.Event()
        self.go_on.set()
        self.waiting = threading.Event()

    def answer(self, path: str, body: bytes) -> Answered:
        """Choose the answer to one request."""
        self.paths.append(path)
        if path.endswith("/usage"):
            return self.usage
        if path.endswith("/models"):
            return self.models
        self.asked.append(json.loads(body))
        self.waiting.set()
        assert self.go_on.wait(PATIENCE_S)
        return self.replies.pop(0)


@contextmanager
def scripted_api() -> Iterator[ScriptedApi]:
    """Run the server on a free port of the loopback address."""
    api = ScriptedApi()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(b"")

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers["Content-Length"])))

        def log_message(self, *_arguments: object) -> None:
            pass

        def _answer(self, body: bytes) -> None:
            api.authorizations.add(self.headers["Authorization"])
            answer = api.answer(self.path, body)
            self.send_response(answer.status)
            for name, value in {"Content-Length": str(len(answer.body)), **answer.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.body)

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_arguments: object) -> None:
            """Keep quiet about callers that have gone."""

    with Server(("127.0.0.1", 0), Handler) as server:
        api.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield api
        finally:
            api.go_on.set()
            server.shutdown()
            thread.join()
