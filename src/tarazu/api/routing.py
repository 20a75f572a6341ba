"""Match paths to the last character."""

import re
from collections.abc import Callable
from typing import Any

from starlette.routing import Route


class ExactRoute(Route):
    """A route that takes its path and nothing else.

    Starlette's pattern ends with `$`, which a line feed may follow, and a parameter ends at one: `/usage%0A` would
    be `/usage`, and `/models/a%0A` the model `a`.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], *, methods: list[str] | None = None) -> None:
        super().__init__(path, endpoint, methods=methods)
        self.path_regex = re.compile(self.path_regex.pattern.removesuffix("$") + r"\Z", re.DOTALL)
