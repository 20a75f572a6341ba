"""Measure what grows, and what does not, with workers and services, with accounts, and with the size of the books.

    python -m bench.scale
    python -m bench.scale --quick

A request is a completion over HTTP from a model server that answers at once, asked for by wrk over 64 connections. One
worker has core 0 for itself; several share both cores with PostgreSQL, the model server and wrk, which take a part of
the second. The cells are measured one after the other; after each the books are audited.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from zoneinfo import ZoneInfo

from msgspec import Struct
from rich.console import Console

from bench import books
from bench.asking import catalogue, conversation
from bench.balance import assert_balanced
from bench.figures import machine, table
from bench.peers import nginx, wrk
from bench.peers.process_tree import CORE, OTHER_CORE, cpu_s, memory_bytes, on_cores, starting_on
from tarazu.cli.clock import system_clock
from tarazu.domain.calendar import day_of
from tarazu.store.engine import open_engine
from tests.support.backend import completion
from tests.support.service import CHAT, RunningService
from tests.support.stores import PostgresqlStore, SqliteStore, Store, postgresql_server

CONNECTIONS = 64
MODEL = "small"
MIB = 1_024 * 1_024

progress = Console(stderr=True)


class Cell(Struct, frozen=True, kw_only=True):
    """What is measured: so many services of so many workers on books of this size, asked by so many accounts."""

    store: str
    workers: int = 1
    services: int = 1
    accounts: int = 1
    requests: int = 0

    def __str__(self) -> str:
        return (
            f"{self.store}, {self.services} x {self.workers} workers, "
            f"{self.accounts:,} accounts, {self.requests:,} requests in the books"
        )


class Measured(Struct, frozen=True):
    """The loads, one for each service, what a request cost, and the memory of one service."""

    loads: Sequence[wrk.Load]
    cpu_us: float
    memory_bytes: float


def cells(stores: Sequence[str], *, accounts: Sequence[int], requests: Sequence[int]) -> Iterator[Cell]:
    """List them, each group from its smallest on."""
    for store in stores:
        for workers in (1, 2, 4):
            yield Cell(store=store, workers=workers)
        if store == "PostgreSQL":
            yield Cell(store=store, services=2)
        for number in accounts:
            yield Cell(store=store, accounts=number)
        for size in requests:
            yield Cell(store=store, accounts=10_000, requests=size)


def measure(cell: Cell, store: Store, folder: Path, backend: str, seconds: int) -> Measured:
    """Fill the books, run the services, and let them be asked.

    Raises:
        BooksDifferError: the books do not balance then.
    """
    url = store.new_books(folder)
    engine = open_engine(url)
    books.fill(engine, _size(cell))
    script = folder / "post.lua"
    keys = [books.key_of(number).text for number in range(cell.accounts)]
    wrk.write_script(script, {"Content-Type": "application/json"}, conversation(MODEL), keys=keys)
    try:
        with _services(cell, url, folder, backend) as services:
            pids = [service.process.pid for service in services]
            _drive(services, script, cell, seconds=1)
            before_s = sum(map(cpu_s, pids))
            loads = _drive(services, script, cell, seconds=seconds)
            used_s = sum(map(cpu_s, pids)) - before_s
            memory = sum(map(memory_bytes, pids)) / len(pids)
        assert_balanced(engine)
    finally:
        engine.dispose()
    return Measured(loads, used_s / sum(load.requests for load in loads) * 1e6, memory)


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
def _services(cell: Cell, url: str, folder: Path, backend: str) -> Iterator[list[RunningService]]:
    sold = catalogue({MODEL: f"{backend}/v1"})
    cores = {CORE} if cell.workers * cell.services == 1 else {CORE, OTHER_CORE}
    with ExitStack() as stack:
        services = []
        for number in range(cell.services):
            at = folder / f"service {number}"
            at.mkdir()
            service = RunningService(at, "", catalogue=sold, server=f"workers = {cell.workers}", database_url=url)
            services.append(stack.enter_context(starting_on(cores, service)))
        yield services


def _drive(services: Sequence[RunningService], script: Path, cell: Cell, *, seconds: int) -> list[wrk.Load]:
    """Let the services be asked at once, over as many connections together as one alone."""

    def drive(service: RunningService) -> wrk.Load:
        url = f"http://127.0.0.1:{service.port}{CHAT}"
        with on_cores({OTHER_CORE}):  # of this thread, and of the processes that it starts
            return wrk.drive(url, script, connections=CONNECTIONS // cell.services, seconds=seconds)

    with ThreadPoolExecutor(cell.services) as threads:
        return list(threads.map(drive, services))


def report(measured: Mapping[Cell, Measured], versions: str) -> str:
    """Write the table, and what it was measured with."""
    head = [
        "store",
        "",
        "workers",
        "accounts",
        "requests before",
        "req/s",
        "p50, ms",
        "p99, ms",
        "us/req",
        "MiB a service",
    ]
    rows = [
        [
            cell.store,
            "two services" if cell.services > 1 else "",
            f"{cell.workers}",
            f"{cell.accounts:,}",
            f"{cell.requests:,}",
            f"{sum(load.per_second for load in each.loads):,.0f}",
            f"{max(load.p50_ms for load in each.loads):,.1f}",
            f"{max(load.p99_ms for load in each.loads):,.1f}",
            f"{each.cpu_us:,.0f}",
            f"{each.memory_bytes / MIB:,.0f}",
        ]
        for cell, each in measured.items()
    ]
    return f"{table(head, rows)}\n\nMeasured with {versions}."


def run(chosen: Sequence[Cell], folder: Path, *, seconds: int) -> str:
    """Measure the cells one after the other."""
    measured: dict[Cell, Measured] = {}
    with (
        starting_on({OTHER_CORE}, nginx.fixed_reply(folder / "backend", completion())) as backend,
        starting_on({OTHER_CORE}, postgresql_server(folder)) as server,
    ):
        for number, cell in enumerate(chosen):
            progress.print(f"{number + 1} of {len(chosen)}: {cell} ...")
            with TemporaryDirectory(prefix="tarazu-bench-") as name:
                store = SqliteStore(Path(name)) if cell.store == "SQLite" else PostgresqlStore(server)
                measured[cell] = measure(cell, store, Path(name), f"http://{backend.address}", seconds)
    return report(measured, f"{machine()}; nginx {nginx.version()}; {wrk.version()}")


def main() -> None:
    """Measure as the arguments say; print the report, and write it where it is asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small books, two seconds for each cell")
    parser.add_argument("--output", type=Path, help="a file to write the report to")
    arguments = parser.parse_args()
    accounts, requests = ((100, 100_000), (0, 1_000_000, 10_000_000))
    if arguments.quick:
        accounts, requests = ((100, 1_000), (0, 10_000, 100_000))
    chosen = list(cells(("SQLite", "PostgreSQL"), accounts=accounts, requests=requests))
    with TemporaryDirectory(prefix="tarazu-bench-") as name:
        text = run(chosen, Path(name), seconds=2 if arguments.quick else 8)
    print(text)
    if arguments.output:
        arguments.output.write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
