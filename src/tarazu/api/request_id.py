"""Give every answer what all have, an X-Request-Id first, and turn what no endpoint has foreseen into a plain 500."""

from collections.abc import Collection

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tarazu.api.envelope import error_body, error_headers, send_json
from tarazu.api.head import CLOSE
from tarazu.domain.calendar import Clock
from tarazu.domain.errors import Error, Refusal
from tarazu.service.completion import busy
from tarazu.service.identifiers import REQUEST_PREFIX, current_request, new_unique_part
from tarazu.service.logs import trace_of
from tarazu.service.own_connections import Peer

HSTS = (b"strict-transport-security", b"max-age=31536000")
"""For a year a browser that was here over HTTPS comes over HTTPS alone. Over plain HTTP it takes no notice of it."""

log = structlog.get_logger()


class RequestIds:
    """The outermost ASGI application. What serves a request finds its unique part in `current_request`.

    `is_https` tells that callers reach the service over HTTPS, `unserved` has the peers whose requests are not
    served, since their connections were cut off, or will be.
    """

    def __init__(self, app: ASGIApp, clock: Clock, *, is_https: bool, unserved: Collection[Peer]) -> None:
        self._app = app
        self._clock = clock
        self._unserved = unserved
        self._always = [HSTS] if is_https else []
        self._more = self._always

    def close_connections(self) -> None:
        """Let each answer from now on tell that its connection closes, and close it."""
        self._more = [*self._always, CLOSE]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request under an id of its own."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        unique = new_unique_part(self._clock())
        current_request.set(unique)
        request_id = REQUEST_PREFIX + unique
        started = False

        async def send_with_id(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message["headers"] = [*message["headers"], *self._more, (b"x-request-id", request_id.encode())]
            await send(message)

        if self._unserved and tuple(scope["client"]) in self._unserved:
            refusal = busy()
            await send_json(
                send_with_id, refusal.error.value.status, error_body(refusal), [*error_headers(refusal), CLOSE]
            )
            return
        try:
            await self._app(scope, receive, send_with_id)
        except Exception as error:  # noqa: BLE001 - here every request begins
            log.error("request_failed", **trace_of(error))  # noqa: TRY400 - its message could quote what was sent
            if not started:
                refusal = Refusal(error=Error.INTERNAL_ERROR)
                await send_json(send_with_id, refusal.error.value.status, error_body(refusal))
