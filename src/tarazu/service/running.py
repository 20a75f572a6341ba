"""One running process of the service: its books, its backends, and what serves completions from them."""

import asyncio
import os
import threading
from collections.abc import Mapping
from contextlib import suppress

import structlog
from msgspec import Struct

from tarazu.backends.http_client import HttpClient
from tarazu.domain.calendar import Clock
from tarazu.service.auditing import Auditor
from tarazu.service.back_office import BackOffice
from tarazu.service.books import open_books
from tarazu.service.broadcast import Channel, follow
from tarazu.service.completion import Completions
from tarazu.service.configuration import Configuration
from tarazu.service.forwarding import Forwarding
from tarazu.service.identifiers import new_process_id
from tarazu.service.passwords import Passwords
from tarazu.service.pools import LocalAddresses, Pools
from tarazu.service.resting import tell_rests
from tarazu.service.signing_in import SigningIn
from tarazu.service.upkeep import keep_up, sweep_ended
from tarazu.store.ledger import Ledger

NEWEST_TIMEOUT_S = 10.0
"""For so long a worker that starts waits to hear by what it is to serve."""

log = structlog.get_logger()


class Setup(Struct, frozen=True):
    """What a process serves by; it is handed from the parent process to each worker, so it can be pickled.

    On `channel` newer ones come.
    """

    configuration: Configuration
    clock: Clock
    local_addresses: LocalAddresses = {}
    channel: Channel | None = None


class Service:
    """Everything that one process serves from. Make it, `start` it in the event loop, `stop` it there."""

    def __init__(self, setup: Setup, environ: Mapping[str, str] = os.environ) -> None:
        """Open the books and make the pools.

        Raises:
            BooksUnavailableError: the database cannot be used.
        """
        configuration = setup.configuration
        server = configuration.server
        self.clock = setup.clock
        self.forwarding = Forwarding(server.trusted_proxies, server.forwarded_for, server.base_url)
        self._channel = setup.channel
        self._engine = open_books(configuration.database_url)
        self._http = HttpClient()
        self._rests_changed = asyncio.Event()
        self.pools = Pools(self._http, environ, self.clock, on_change=self._rests_changed.set)
        self.pools.adopt(configuration.catalogue, setup.local_addresses)
        self.ledger = Ledger(self._engine, configuration.catalogue, self.clock)
        self.back_office = BackOffice(self._engine, configuration.catalogue, self.clock)
        self.auditor = Auditor(self._engine, self.clock)
        self._passwords = Passwords()
        self.signing_in = SigningIn(self.back_office, self._passwords, self.clock)
        self.completions = Completions(self.ledger, self.pools, self.clock, max_in_flight=server.max_in_flight)

    async def start(self) -> None:
        """Begin to work on the books, and to follow changes of the configuration, from the newest on."""
        self.ledger.start()
        self._background = [
            asyncio.create_task(keep_up(self.ledger)),
            asyncio.create_task(sweep_ended(self.back_office)),
            asyncio.create_task(tell_rests(self.ledger, self.pools, self._rests_changed, new_process_id())),
        ]
        if self._channel is not None:
            await self._follow(self._channel)

    async def stop(self) -> None:
        """Finish what waits for the books, and close all connections."""
        for task in self._background:
            task.cancel()
        self._passwords.close()
        self.back_office.close()
        await self.ledger.stop()
        self._http.close()
        self._engine.dispose()

    def adopt(self, setup: Setup) -> None:
        """Sell what the setup's catalogue sells, from the next admission on; requests on their way end as they began.

        First the pools, then the admissions that lead to them.
        """
        catalogue = setup.configuration.catalogue
        self.pools.adopt(catalogue, setup.local_addresses)
        self.ledger.catalogue = catalogue
        self.back_office.catalogue = catalogue

    async def _follow(self, channel: Channel) -> None:
        """Follow, and wait for the newest: a worker that starts late must not begin with what was sold long ago."""
        loop = asyncio.get_running_loop()
        is_told = asyncio.Event()

        async def adopt(setup: Setup) -> None:
            is_told.set()
            self.adopt(setup)

        def take(setup: Setup) -> bool:
            try:
                asyncio.run_coroutine_threadsafe(adopt(setup), loop).result()
            except Exception as error:  # noqa: BLE001 - the worker serves on as it did, and hears of the next one
                log.error("reload_failed", reason=type(error).__name__)  # noqa: TRY400 - a trace may quote values
                return False
            return True

        def run() -> None:
            follow(channel, take)
            with suppress(RuntimeError):  # the loop has ended too
                loop.call_soon_threadsafe(is_told.set)  # where the parent has died, nobody tells any more

        threading.Thread(target=run, name="follow", daemon=True).start()
        try:
            async with asyncio.timeout(NEWEST_TIMEOUT_S):
                await is_told.wait()
        except TimeoutError:
            log.warning("newest_configuration_unknown", waited_s=NEWEST_TIMEOUT_S)
