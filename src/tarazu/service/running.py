"""One running process of the service: its books, its backends, and what serves completions from them."""

import asyncio
import os
from collections.abc import Callable, Mapping

from msgspec import Struct

from tarazu.backends.health import unheard
from tarazu.backends.http_client import HttpClient
from tarazu.backends.pool import Pool
from tarazu.domain.calendar import Clock
from tarazu.domain.catalogue import Catalogue
from tarazu.domain.people import PersonKind
from tarazu.service.access import NotingLedger, NotingPool
from tarazu.service.auditing import Auditor
from tarazu.service.back_office import BackOffice
from tarazu.service.books import open_books
from tarazu.service.completion import Completions
from tarazu.service.configuration import Configuration
from tarazu.service.forwarding import Forwarding
from tarazu.service.identifiers import new_process_id
from tarazu.service.link import Link, Order, Stage
from tarazu.service.logs import log_loop_error
from tarazu.service.own_access import OwnAccess
from tarazu.service.packet_filters import take_no_more
from tarazu.service.passwords import Passwords
from tarazu.service.pools import LocalAddresses, Pools, local_paths
from tarazu.service.proving import Prover
from tarazu.service.pulse import Pulse
from tarazu.service.readiness import ReadinessCheck
from tarazu.service.refused_requests import RefusedRequests
from tarazu.service.resting import tell_rests
from tarazu.service.signing_in import SigningIn
from tarazu.service.upkeep import bound_replies, keep_up, sweep_ended
from tarazu.store.ledger import Ledger

WORKER_AWAY_S = 20
"""How long a worker that starts waits for PostgreSQL: so long that its end is no sign of a loop of crashes, and less
than it is waited for (`tarazu.service.workers`)."""


class Setup(Struct, frozen=True):
    """What a process serves by; it is handed from the parent process to each worker, so it can be pickled."""

    configuration: Configuration
    clock: Clock
    local_addresses: LocalAddresses = {}

    def named_local_models(self) -> LocalAddresses:
        """Tell where the local models are asked that the catalogue names."""
        return {path: self.local_addresses[path] for path in local_paths(self.configuration.catalogue)}


class People(Struct, frozen=True):
    """What people of one kind are served by: their office, and what proves who they are."""

    office: BackOffice
    signing_in: SigningIn
    own_access: OwnAccess


class Service:
    """Everything that one process serves from. Make it, `start` it in the event loop, `stop` it there."""

    def __init__(self, setup: Setup, link: Link | None = None, environ: Mapping[str, str] = os.environ) -> None:
        """Open the books and make the pools; `link` leads to the parent process, where there is one.

        Raises:
            BooksUnavailableError: the database cannot be used.
        """
        configuration = setup.configuration
        server = self.server = configuration.server
        self.clock = setup.clock
        self.configuration_path = configuration.path
        self.environ = environ
        self.forwarding = Forwarding(server.trusted_proxies, server.forwarded_for, server.base_url)
        self._link = link
        self._port = server.port
        self.pulse = Pulse()
        self.on_drain: Callable[[], None] = unheard
        self._engine = open_books(configuration.database_url, await_s=WORKER_AWAY_S)
        self._http = HttpClient(connections_max=server.max_in_flight)
        self._rests_changed = asyncio.Event()
        has_access_log = configuration.logs.access
        pool_type = NotingPool if has_access_log else Pool
        self.pools = Pools(self._http, environ, self.clock, self._rests_changed.set, pool_type)
        self.pools.adopt(configuration.catalogue, setup.local_addresses)
        ledger_type = NotingLedger if has_access_log else Ledger
        self.ledger = ledger_type(self._engine, configuration.catalogue, self.clock)
        self.readiness = ReadinessCheck(self.ledger, self._http)
        self.readiness.local_models = setup.named_local_models()
        self.auditor = Auditor(self._engine, self.clock)
        self._passwords = Passwords()
        self.people = {kind: self._people(configuration.catalogue) for kind in PersonKind}
        operator_office = self.people[PersonKind.OPERATOR].office
        self.program_office = BackOffice(self._engine, configuration.catalogue, self.clock, beside=operator_office)
        self.operators = configuration.operators
        self._refused = RefusedRequests(self.clock)
        self.completions = Completions(
            self.ledger,
            self.pools,
            self.pulse,
            self._refused,
            max_in_flight=server.max_in_flight,
            max_in_flight_per_account=server.in_flight_of_account,
        )

    async def start(self) -> None:
        """Begin to work on the books, and to follow changes of the configuration, from the newest on."""
        asyncio.get_running_loop().set_exception_handler(log_loop_error)
        self.ledger.start()
        self._background = [
            asyncio.create_task(keep_up(self.ledger)),
            asyncio.create_task(sweep_ended(self.program_office)),
            asyncio.create_task(bound_replies(self.program_office)),
            asyncio.create_task(tell_rests(self.ledger, self.pools, self._rests_changed, new_process_id())),
            asyncio.create_task(self._refused.tell(self.program_office)),
        ]
        if self._link is not None:
            self._link.follow(self._obey)
            self.pulse.start(self._link.beat)

    async def stop(self) -> None:
        """Finish what waits for the books, and close all connections."""
        for task in self._background:
            task.cancel()
        await asyncio.wait(self._background)
        await self._refused.tell_now(self.program_office)
        self.pulse.stop()
        self._passwords.close()
        for office in self._offices:
            office.close()
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
        self.readiness.local_models = setup.named_local_models()
        for office in self._offices:
            office.catalogue = catalogue

    @property
    def _offices(self) -> list[BackOffice]:
        return [*(each.office for each in self.people.values()), self.program_office]

    def _people(self, catalogue: Catalogue) -> People:
        office = BackOffice(self._engine, catalogue, self.clock)
        prover = Prover(office, self._passwords, self.clock)
        return People(office, SigningIn(office, prover, self.clock), OwnAccess(office, prover, self.clock))

    def _obey(self, order: Order) -> None:
        """Do as the parent says; where the setup cannot be taken, all stays as it was."""
        self.adopt(order.setup)
        if order.stage is not Stage.SERVING:
            self.readiness.is_draining = True
            self.on_drain()
        if order.stage is Stage.LEAVING:
            take_no_more(self._port)
