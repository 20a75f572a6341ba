"""Match paths to the last character, and take a short cut to the endpoint that is asked most."""

import re
from collections.abc import Callable
from typing import Any

from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send


class ExactRoute(Route):
    """A route that takes its path and nothing else.

    Starlette's pattern ends with `$`, which a line feed may follow, and a parameter ends at one: `/usage%0A` would
    be `/usage`, and `/models/a%0A` the model `a`. A parameter that is no model's id holds no percent sign: one is left
    where a path has been sent in another spelling (`tarazu.api.head`).
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], *, methods: list[str] | None = None) -> None:
        super().__init__(path, endpoint, methods=methods)
        pattern = self.path_regex.pattern.removesuffix("$").replace("[^/]+", "[^/%]+")
        self.path_regex = re.compile(pattern + r"\Z", re.DOTALL)


class ShortCut:
    """Takes what is posted to one path straight to its endpoint: the router's layers cost a tenth of such a request.

    All else goes to the application, which has the route too, and answers other methods there.
    """

    def __init__(self, app: ASGIApp, path: str, endpoint: ASGIApp) -> None:
        self.app = app
        self._path = path
        self._endpoint = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        is_short = scope["type"] == "http" and scope["path"] == self._path and scope["method"] == "POST"
        await (self._endpoint if is_short else self.app)(scope, receive, send)
