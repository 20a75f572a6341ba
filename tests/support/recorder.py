"""What clients send to a service and are answered, in their order: a server in front of it, which passes all on."""

import http.client
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

from msgspec import Struct

from tests.support.patience import PATIENCE_S

OF_ONE_CONNECTION = {"connection", "date", "host", "server", "transfer-encoding"}
"""Headers that are not passed on."""


class Passed(Struct, frozen=True):
    """One request and its answer; `began_s` and `ended_s` are of a clock that runs evenly."""

    method: str
    path: str
    sent: bytes
    status: int
    answer: bytes
    began_s: float
    ended_s: float


class Recorder:
    """The server, on a free port of 127.0.0.1. `on_passed` hears of each answer before its client does."""

    def __init__(self, port: int) -> None:
        self.passed: list[Passed] = []
        self.on_passed: Callable[[Passed], None] = lambda _passed: None
        recorder = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                recorder._pass(self, port)

            def do_POST(self) -> None:
                recorder._pass(self, port)

            def log_message(self, *_args: object) -> None:
                """Print nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="recorder")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(PATIENCE_S)

    @property
    def origin(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def reset(self) -> None:
        """Forget what was passed on."""
        self.passed = []
        self.on_passed = lambda _passed: None

    def _pass(self, handler: BaseHTTPRequestHandler, port: int) -> None:
        began_s = time.monotonic()
        sent = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        headers = {name: value for name, value in handler.headers.items() if name.lower() not in OF_ONE_CONNECTION}
        service = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
        try:
            service.request(handler.command, handler.path, sent, headers)
            response = service.getresponse()
            answer = response.read()
        finally:
            service.close()
        passed = Passed(handler.command, handler.path, sent, response.status, answer, began_s, time.monotonic())
        self.passed.append(passed)
        self.on_passed(passed)
        handler.send_response(response.status)
        for name, value in response.getheaders():
            if name.lower() not in OF_ONE_CONNECTION:
                handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(answer)
