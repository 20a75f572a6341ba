"""Measure one cell: make the books, start the services, let them be asked, and audit."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import date
from pathlib import Path
from zoneinfo import ZoneInfo

from msgspec import Struct

from bench import books
from bench.asking import catalogue, conversation
from bench.balance import assert_balanced
from bench.peers import nginx, wrk
from bench.peers.process_tree import CORE, OTHER_CORE, cpu_s, memory_bytes, on_cores, starting_on, workers
from bench.scale.cells import POSTGRESQL, Cell
from bench.scale.database import Use, watched
from bench.scale.shares import each_having
from tarazu.cli.clock import system_clock
from tarazu.domain.calendar import day_of
from tarazu.store.engine import open_engine
from tests.support.backend import completion
from tests.support.service import CHAT, RunningService
from tests.support.stores import PostgresqlStore, SqliteStore, Store, postgresql_server

MODEL = "small"
WARM_UP_S = 2


class Measured(Struct, frozen=True):
    """The loads, one for each service, a request's time of a core, the memory of one service, PostgreSQL's part."""

    loads: Sequence[wrk.Load]
    cpu_us: float
    memory_bytes: float
    database: Use

    @property
    def per_second(self) -> float:
        """Requests a second, of all services."""
        return sum(load.per_second for load in self.loads)


def measure(cell: Cell, folder: Path, seconds: int) -> Measured:
    """Measure it in a folder of its own, with a model server and a database of its own.

    Raises:
        BooksDifferError: the books do not balance afterwards.
    """
    with ExitStack() as stack:
        backend = stack.enter_context(
            starting_on({OTHER_CORE}, nginx.fixed_reply(folder / "backend", completion())),
        )
        server_url = None
        store: Store = SqliteStore(folder)
        if cell.store == POSTGRESQL:
            cores = {OTHER_CORE} if cell.share is None else {CORE, OTHER_CORE}
            server_url = stack.enter_context(starting_on(cores, postgresql_server(folder)))
            store = PostgresqlStore(server_url)
        return _measure(cell, store.new_books(folder), folder, f"http://{backend.address}/v1", server_url, seconds)


def _measure(
    cell: Cell, database_url: str, folder: Path, backend_url: str, server_url: str | None, seconds: int
) -> Measured:
    engine = open_engine(database_url)
    books.fill(engine, _size(cell))
    script = folder / "post.lua"
    keys = [books.key_of(number).text for number in range(cell.accounts)]
    wrk.write_script(script, {"Content-Type": "application/json"}, conversation(MODEL), keys=keys)
    try:
        with _services(cell, database_url, folder, catalogue({MODEL: backend_url})) as services:
            pids = [service.process.pid for service in services]
            with each_having([worker for pid in pids for worker in workers(pid)], cell.share):
                _drive(services, script, cell, seconds=WARM_UP_S)
                before_s = sum(map(cpu_s, pids))
                with watched(server_url) as database:
                    loads = _drive(services, script, cell, seconds=seconds)
                used_s = sum(map(cpu_s, pids)) - before_s
                memory = sum(map(memory_bytes, pids)) / len(pids)
        assert_balanced(engine)
    finally:
        engine.dispose()
    return Measured(loads, used_s / sum(load.requests for load in loads) * 1e6, memory, database)


def _size(cell: Cell) -> books.Size:
    return books.Size(
        requests=cell.requests,
        accounts=cell.accounts,
        models=(MODEL,),
        last_day=date.fromisoformat(day_of(system_clock(), ZoneInfo("UTC"))),
        holds=0,
        idempotency_keys=0,
    )


@contextmanager
def _services(cell: Cell, database_url: str, folder: Path, sold: str) -> Iterator[list[RunningService]]:
    cores = {CORE} if cell.all_workers == 1 and cell.share is None else {CORE, OTHER_CORE}
    with ExitStack() as stack:
        services = []
        for number in range(cell.services):
            at = folder / f"service {number}"
            at.mkdir()
            service = RunningService(
                at, "", catalogue=sold, server=f"workers = {cell.workers}", database_url=database_url
            )
            services.append(stack.enter_context(starting_on(cores, service)))
        yield services


def _drive(services: Sequence[RunningService], script: Path, cell: Cell, *, seconds: int) -> list[wrk.Load]:
    """Let the services be asked at once, each over its part of the connections."""

    def drive(service: RunningService) -> wrk.Load:
        url = f"http://127.0.0.1:{service.port}{CHAT}"
        with on_cores({OTHER_CORE}):  # of this thread, and of the processes that it starts
            return wrk.drive(url, script, connections=cell.connections // cell.services, seconds=seconds)

    with ThreadPoolExecutor(cell.services) as threads:
        return list(threads.map(drive, services))
