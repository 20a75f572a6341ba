"""Tell operators which backends rest: each process writes its own into the books, in the background."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress

import structlog
from msgspec import Struct
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from tarazu.backends.health import Rest
from tarazu.backends.pool import Pool
from tarazu.domain.calendar import MILLISECONDS_PER_SECOND
from tarazu.store.availability import BooksUnavailableError
from tarazu.store.backend_rests import BackendRest, write_rests
from tarazu.store.ledger import Ledger

WRITE_PAUSE_S = 1.0
"""After each write, whatever happens meanwhile: then the newest state is written."""
RETRY_PAUSE_S = 10.0
"""After a write that has failed."""

log = structlog.get_logger()


class RestingBackend(Struct, frozen=True):
    """A backend of a model that rests, as its pool in this process sees it."""

    model_id: str
    backend: str
    rest: Rest


async def tell_rests(ledger: Ledger, pools: Mapping[str, Pool], changed: asyncio.Event, process_id: str) -> None:
    """Keep the books' rows of this process as its pools are, until cancelled. What fails is tried again.

    `changed` is set by whoever changes something; a rest that ends is noticed here.
    """
    loop = asyncio.get_running_loop()
    told: list[RestingBackend] | None = None
    while True:
        changed.clear()
        resting = _resting(pools, loop.time())
        pause_s = WRITE_PAUSE_S
        if resting != told:
            try:
                await _write(ledger, resting, process_id)
                told = resting
            except (BooksUnavailableError, DBAPIError) as error:
                log.warning("rests_not_written", reason=str(error))
                pause_s = RETRY_PAUSE_S
        await asyncio.sleep(pause_s)
        if resting == told:
            first_end_s = min((each.rest.until_s for each in resting), default=None)
            with suppress(TimeoutError):
                async with asyncio.timeout_at(first_end_s):
                    await changed.wait()


def _resting(pools: Mapping[str, Pool], now_s: float) -> list[RestingBackend]:
    return [
        RestingBackend(model_id, name, rest) for model_id, pool in pools.items() for name, rest in pool.rests(now_s)
    ]


async def _write(ledger: Ledger, resting: list[RestingBackend], process_id: str) -> None:
    loop = asyncio.get_running_loop()

    def write(connection: Connection, now_ms: int) -> None:
        now_s = loop.time()

        def instant_ms(at_s: float) -> int:
            """Tell what the clock says at an instant of the loop."""
            return now_ms + round((at_s - now_s) * MILLISECONDS_PER_SECOND)

        rests = [
            BackendRest(
                process_id=process_id,
                backend=each.backend,
                model_id=each.model_id,
                state=each.rest.state.value,
                fault=each.rest.fault.word,
                since_ms=instant_ms(each.rest.since_s),
                until_ms=instant_ms(each.rest.until_s),
            )
            for each in resting
        ]
        write_rests(connection, process_id, rests, now_ms)

    await ledger.work(write)
