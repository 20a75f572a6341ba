"""The backends of one model: asked in the order of their priority until one gives a valid reply, in one deadline."""

import asyncio
from collections.abc import Sequence

import structlog
from msgspec import Struct

from tarazu.backends.port import Backend, BackendError, Reply
from tarazu.domain.prompt import ChatRequest, capped

log = structlog.get_logger()


class PoolReply(Struct, frozen=True):
    """A reply, and how many backends were asked for it."""

    reply: Reply
    tries: int


class PoolError(Exception):
    """No backend gave a valid reply in time, after `tries` of them were asked."""

    def __init__(self, tries: int) -> None:
        super().__init__(f"no valid reply after {tries} tries")
        self.tries = tries


class Pool:
    """The backends of one model, first choice first."""

    def __init__(
        self, model_id: str, backends: Sequence[Backend], *, timeout_s: float, max_output_tokens: int | None = None
    ) -> None:
        self._model_id = model_id
        self._backends = tuple(backends)
        self._timeout_s = timeout_s
        self._max_output_tokens = max_output_tokens

    def __repr__(self) -> str:
        return f"<Pool {self._model_id}, {len(self._backends)} backends>"

    @property
    def available(self) -> bool:
        """Tell whether the model can be asked now."""
        return bool(self._backends)

    async def ask(self, request: ChatRequest) -> PoolReply:
        """Get a reply from the first backend that has one, all within the model's time-out.

        Raises:
            PoolError: all have failed, or the time is over.
        """
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + self._timeout_s
        request = capped(request, self._max_output_tokens)
        tries = 0
        for backend in self._backends:
            left_s = deadline_s - loop.time()
            if left_s <= 0:
                break
            tries += 1
            try:
                return PoolReply(await backend.ask(request, timeout_s=left_s), tries)
            except BackendError as error:
                log.warning(
                    "backend_failed",
                    model=self._model_id,
                    backend=backend.name,
                    fault=error.fault.word,
                    detail=error.detail,
                )
        raise PoolError(tries)
