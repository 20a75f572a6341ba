"""What every answer of the pages tells the browser about itself."""

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tarazu.service.forwarding import Forwarding

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
"""Nothing comes from anywhere else, nothing inside a page is a style or a script, and nobody frames it."""

HEADERS = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    # With `no-referrer` browsers would send `Origin: null` with our own forms too, and we could not tell them.
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


ORIGIN = "tarazu.origin"
"""Where a request's scope keeps its origin."""


class PageHeaders:
    """An ASGI application around the pages of a site. What a page says of itself stands."""

    def __init__(self, app: ASGIApp, forwarding: Forwarding) -> None:
        self._app = app
        self._forwarding = forwarding

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        scope[ORIGIN] = self._forwarding.origin(scope)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_with_headers)
