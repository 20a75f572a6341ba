"""Let pages of other origins call the API from a browser, where the configuration names them."""

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tarazu.api.contract.headers import HEADERS
from tarazu.service.configuration.addresses import API_PATH

VARY = (b"vary", b"Origin")
PREFLIGHT_KEPT_S = 600
"""How long a browser may go by what it was told before a request."""


class CrossOrigin:
    """An ASGI application that lets pages of `origins` call the API, and no other part of the service.

    A page sends its key in a header, never cookies. It may send any other header: official clients have many of their
    own. Of other origins nothing is answered that a browser would take for a permission.
    """

    def __init__(self, app: ASGIApp, origins: tuple[str, ...]) -> None:
        self._app = app
        self._origins = frozenset(origin.encode() for origin in origins)
        self._shared = CORSMiddleware(
            app,
            allow_origins=origins,
            allow_methods=["*"],  # what a path does not take is answered 405, which the page can read
            allow_headers=["*"],
            expose_headers=tuple(HEADERS),
            max_age=PREFLIGHT_KEPT_S,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or not scope["path"].startswith(f"{API_PATH}/"):
            await self._app(scope, receive, send)
            return
        origins = [value for name, value in scope["headers"] if name == b"origin"]
        if len(origins) == 1 and origins[0] in self._origins:
            await self._shared(scope, receive, send)
            return

        async def send_on(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], VARY]
            await send(message)

        await self._app(scope, receive, send_on)
