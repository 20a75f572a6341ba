"""Tell the books which requests were refused, in the background: many cost no more than a few."""

import asyncio
from functools import partial

import structlog
from sqlalchemy.exc import DBAPIError

from tarazu.domain.calendar import Clock
from tarazu.domain.errors import Refusal
from tarazu.domain.refused import TOLD, RefusedSums
from tarazu.service.back_office import BackOffice
from tarazu.store.availability import BooksUnavailableError
from tarazu.store.refused_requests import write_refused

GATHER_S = 2.0
"""For so long what is refused is added up, before it is written."""
RETRY_PAUSE_S = 10.0
"""After a write that has failed."""

log = structlog.get_logger()


class RefusedRequests:
    """What this process refuses, and has not told the books yet."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._sums = RefusedSums()
        self._came = asyncio.Event()

    def note(self, refusal: Refusal, model: str | None) -> None:
        """Count it, where it is one that its sender's history tells of; `model` is the one that was asked for."""
        if refusal.sender is not None and refusal.error in TOLD:
            self._sums.note(refusal.sender, refusal.error, model, self._clock())
            self._came.set()

    async def tell(self, office: BackOffice) -> None:
        """Write it down, until cancelled. What fails is tried again."""
        while True:
            await self._came.wait()
            await asyncio.sleep(GATHER_S if await self.tell_now(office) else RETRY_PAUSE_S)

    async def tell_now(self, office: BackOffice) -> bool:
        """Write down what there is; answer with whether the books have it."""
        self._came.clear()
        if not (taken := self._sums.take()):
            return True
        try:
            await office.change(partial(write_refused, refused=taken))
        except (BooksUnavailableError, DBAPIError) as error:
            log.warning("refused_requests_not_written", reason=str(error))
            self._sums.put_back(taken)
            self._came.set()
            return False
        return True
