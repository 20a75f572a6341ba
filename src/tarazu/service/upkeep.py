"""What the books need from time to time beside the ledger's own sweep.

PostgreSQL's months are made ahead, and what has ended of signing in is taken away.
"""

import asyncio
from functools import partial

import structlog
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from tarazu.domain.bounds import MIB
from tarazu.domain.calendar import period_of, periods_from
from tarazu.service.back_office import BackOffice
from tarazu.store.availability import BooksUnavailableError
from tarazu.store.ended import ENDED_MAX, take_ended_away
from tarazu.store.idempotency import drop_oldest_replies, kept_reply_bytes
from tarazu.store.ledger import Ledger
from tarazu.store.operations import KEYS_SWEEP_MAX
from tarazu.store.partitions import prepare_partitions

UPKEEP_INTERVAL_S = 3_600
PERIODS_AHEAD = 3
"""This month and the next two."""
ENDED_INTERVAL_S = 300
ENDED_PAUSE_S = 1
"""Where there are more than one transaction takes away."""
REPLIES_INTERVAL_S = 30
"""How often the replies that are kept under idempotency keys are added up."""

log = structlog.get_logger()


async def keep_up(ledger: Ledger) -> None:
    """Do it now and once an hour, until cancelled. What fails is tried again an hour later."""

    def prepare(connection: Connection, now_ms: int) -> list[str]:
        return prepare_partitions(connection, periods_from(period_of(now_ms, ledger.catalogue.zone), PERIODS_AHEAD))

    while True:
        try:
            made = await ledger.work(prepare)
            if made:
                log.info("partitions_made", partitions=made)
        except (BooksUnavailableError, DBAPIError) as error:
            log.warning("upkeep_failed", reason=str(error))
        await asyncio.sleep(UPKEEP_INTERVAL_S)


async def sweep_ended(office: BackOffice) -> None:
    """Take ended sessions, invitations and counts of wrong passwords away, now and every ENDED_INTERVAL_S."""
    while True:
        taken = 0
        try:
            taken = await office.change(lambda connection: take_ended_away(connection, office.clock()))
        except (BooksUnavailableError, DBAPIError) as error:
            log.warning("ended_not_swept", reason=str(error))
        await asyncio.sleep(ENDED_INTERVAL_S if taken < ENDED_MAX else ENDED_PAUSE_S)


async def bound_replies(office: BackOffice) -> None:
    """Drop the oldest replies of all accounts where more is kept than may be, now and every REPLIES_INTERVAL_S."""
    while True:
        dropped = 0
        try:
            bound = office.catalogue.bounds.reply_bytes
            if await office.look(kept_reply_bytes) > bound:
                dropped = await office.change(partial(drop_oldest_replies, bytes_max=bound))
                log.warning("kept_replies_dropped", replies=dropped, bound_mib=bound // MIB)
        except (BooksUnavailableError, DBAPIError) as error:
            log.warning("kept_replies_not_bounded", reason=str(error))
        await asyncio.sleep(REPLIES_INTERVAL_S if dropped < KEYS_SWEEP_MAX else ENDED_PAUSE_S)
