"""The access log: one line a request, at its end, without what was asked and answered."""

import time
from typing import Any

import msgspec
import structlog
from msgspec import Struct
from starlette.routing import Mount
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tarazu.api.head import HEAD
from tarazu.domain.calendar import MILLISECONDS_PER_SECOND
from tarazu.service.access import Access, current_access
from tarazu.service.forwarding import Forwarding

UNMATCHED = "unmatched"
"""In place of a path that is no route's: anything may stand there."""
ERRORS_FROM = 400

log = structlog.get_logger()


class _Code(Struct):
    code: str | None = None


class _Error(Struct):
    error: _Code | str | None = None


_error_of = msgspec.json.Decoder(_Error).decode


class AccessLog:
    """An ASGI application around all others. `short_cut` is the path that the router does not see."""

    def __init__(self, app: ASGIApp, forwarding: Forwarding, short_cut: str) -> None:
        self._app = app
        self._forwarding = forwarding
        self._short_cut = short_cut

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, and write its line."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begin_s = time.monotonic()
        access = Access()
        current_access.set(access)
        status: int | None = None
        code: str | None = None
        size = 0

        async def send_counted(message: Message) -> None:
            nonlocal status, code, size
            if message["type"] == "http.response.start":
                status = message["status"]
            else:
                body = message.get("body", b"")
                code = _code_of(body) if status is not None and status >= ERRORS_FROM and size == 0 else code
                size += len(body)
            await send(message)

        try:
            await self._app(scope, receive, send_counted)
        finally:
            told: dict[str, Any] = {
                "method": scope["method"],
                "path": self._path(scope),
                "status": status,
                "code": code,
                **msgspec.structs.asdict(access),
                "duration_ms": round((time.monotonic() - begin_s) * MILLISECONDS_PER_SECOND),
                "address": self._address(scope),
                "bytes": size,
            }
            log.info("request", **{name: value for name, value in told.items() if value is not None})

    def _address(self, scope: Scope) -> str | None:
        if HEAD in scope:
            return self._forwarding.origin(scope).address
        peer: str | None = scope["client"][0] if scope.get("client") else None
        return peer  # of a head that is out of bounds nothing is read

    def _path(self, scope: Scope) -> str:
        """Name the route, in which a parameter stands for its value: an invitation's secret is one."""
        route = scope.get("route")
        if route is None:
            return self._short_cut if scope["path"] == self._short_cut else UNMATCHED
        if isinstance(route, Mount):
            return UNMATCHED
        path: str = scope.get("root_path", "") + route.path.replace(":path}", "}")
        return path


def _code_of(body: bytes) -> str | None:
    try:
        error = _error_of(body).error
    except (msgspec.DecodeError, UnicodeDecodeError):  # a page
        return None
    return error.code if isinstance(error, _Code) else None
