"""Count the keys that are refused, in the log: who tries keys is seen, and cannot fill it."""

from collections.abc import Mapping
from typing import Any

import structlog

from tarazu.domain.errors import Error, Refusal
from tarazu.service.forwarding import Forwarding

log = structlog.get_logger()


class RefusedKeys:
    """Takes note of refusals. `forwarding` tells from where the request came."""

    def __init__(self, forwarding: Forwarding) -> None:
        self._forwarding = forwarding

    def note(self, refusal: Refusal, scope: Mapping[str, Any]) -> None:
        """Write a line where it was the key that was refused; a minute's further ones are counted in one."""
        if refusal.error is Error.INVALID_API_KEY:
            known = {} if refusal.sender is None else {"key_id": refusal.sender.key_id}
            log.warning("keys_refused", address=self._forwarding.origin(scope).address, **known)
