"""What the books need from time to time beside the ledger's own sweep: PostgreSQL's months, made ahead."""

import asyncio

import structlog
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from tarazu.domain.calendar import period_of, periods_from
from tarazu.store.availability import BooksUnavailableError
from tarazu.store.ledger import Ledger
from tarazu.store.partitions import prepare_partitions

UPKEEP_INTERVAL_S = 3_600
PERIODS_AHEAD = 3
"""This month and the next two."""

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
