"""One running process of the service: its books, its backends, and what serves completions from them."""

import asyncio
import os
from collections.abc import Mapping

from msgspec import Struct

from tarazu.backends.http_client import HttpClient
from tarazu.domain.calendar import Clock
from tarazu.service.books import open_books
from tarazu.service.completion import Completions
from tarazu.service.configuration import Configuration
from tarazu.service.pools import LocalAddresses, make_pools
from tarazu.service.upkeep import keep_up
from tarazu.store.ledger import Ledger


class Setup(Struct, frozen=True):
    """What a process needs to begin; it is handed from the parent process to each worker, so it can be pickled."""

    configuration: Configuration
    clock: Clock
    local_addresses: LocalAddresses = {}


class Service:
    """Everything that one process serves from. Make it, `start` it in the event loop, `stop` it there."""

    def __init__(self, setup: Setup, environ: Mapping[str, str] = os.environ) -> None:
        """Open the books and make the pools.

        Raises:
            BooksUnavailableError: the database cannot be used.
        """
        configuration = setup.configuration
        self.catalogue = configuration.catalogue
        self.clock = setup.clock
        self._engine = open_books(configuration.database_url)
        self._http = HttpClient()
        self.pools = make_pools(self.catalogue, self._http, environ, setup.local_addresses)
        self.ledger = Ledger(self._engine, self.catalogue, self.clock)
        self.completions = Completions(
            self.ledger, self.pools, self.clock, max_in_flight=configuration.server.max_in_flight
        )

    async def start(self) -> None:
        """Begin to work on the books."""
        self.ledger.start()
        self._upkeep = asyncio.create_task(keep_up(self.ledger))

    async def stop(self) -> None:
        """Finish what waits for the books, and close all connections."""
        self._upkeep.cancel()
        await self.ledger.stop()
        self._http.close()
        self._engine.dispose()
