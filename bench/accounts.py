"""Measure one hot account with all the load against 10,000 accounts with a little each, on both stores.

    python -m bench.accounts
    python -m bench.accounts --quick

A request is an admission and its charge: by the ledger alone, and as a completion over HTTP from a model server that
answers at once. All cells are measured in turn, several times over, so that what else the machine does meets all alike.
After each the books are audited: a difference, or a request that is not charged once, ends the run.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from hashlib import sha512
from itertools import chain, cycle, repeat
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Protocol

from msgspec import Struct
from sqlalchemy import Engine, insert

from bench import asking
from bench.arguments import parser_of
from bench.asking import catalogue, prompt_request
from bench.balance import BooksDifferError, assert_balanced, charged_requests
from bench.figures import Figures, fsyncs_s, machine, percentile, table
from bench.loopback import connection, model_server
from tarazu.cli.clock import system_clock
from tarazu.domain.admission import Asked
from tarazu.domain.calendar import period_of, periods_from
from tarazu.domain.credits import Hold
from tarazu.domain.keys import MintedKey, mint, parse
from tarazu.service.identifiers import COMPLETION_PREFIX, new_unique_part
from tarazu.store.engine import open_engine, transaction
from tarazu.store.ledger import Ledger
from tarazu.store.partitions import prepare_partitions
from tarazu.store.rows import account_row, key_row
from tarazu.store.schema import accounts, keys
from tests.support.backend import completion
from tests.support.service import RunningService
from tests.support.stores import PostgresqlStore, SqliteStore, Store, postgresql_server
from tests.support.values import make_account, make_asked, make_catalogue, make_key, make_plan

MODEL = "small"
HOT = 0
"""The number of the hot account; those with a little each are counted from 1."""
SEED = 1
PLAN = make_plan(asking.PLAN, 10**9, requests_per_minute=10**9)

Ask = Callable[[int], Awaitable[None]]
"""Serve one request of the account with this number."""


class Size(Struct, frozen=True, kw_only=True):
    """How much is measured: each cell `rounds` times for `seconds`, after `warm_up_s` that does not count."""

    accounts: int = 10_000
    callers: tuple[int, ...] = (1, 32, 128)
    rounds: int = 3
    seconds: float = 2.0
    warm_up_s: float = 0.5


QUICK = Size(rounds=1, seconds=0.5, warm_up_s=0.2)


class Cell(Struct, frozen=True):
    """One thing that is measured; `shape` is `hot` or `spread`."""

    level: str
    store: str
    callers: int
    shape: str


class Target(Protocol):
    """What is driven, with the engine of its books."""

    engine: Engine

    def caller(self) -> AbstractAsyncContextManager[Ask]:
        """Come as one more caller."""
        ...


class LedgerTarget:
    """The ledger alone."""

    def __init__(self, ledger: Ledger, engine: Engine, minted: Sequence[MintedKey]) -> None:
        self.engine = engine
        self._ledger = ledger
        self._keys = [parse(key.text) for key in minted]

    @asynccontextmanager
    async def caller(self) -> AsyncIterator[Ask]:
        """All callers share the ledger."""
        yield self._ask

    async def _ask(self, number: int) -> None:
        key = self._keys[number]
        assert key is not None
        asked: Asked = make_asked(key, request_id=COMPLETION_PREFIX + new_unique_part(system_clock()))
        hold = (await self._ledger.admit(asked)).outcome
        assert isinstance(hold, Hold), hold
        assert await self._ledger.charge(hold, tries=1, prompt_tokens=10, completion_tokens=20)


class ServiceTarget:
    """The whole service, over HTTP."""

    def __init__(self, service: RunningService, minted: Sequence[MintedKey]) -> None:
        self.engine = service.engine
        self._port = service.port
        self._requests = [prompt_request(key.text, MODEL) for key in minted]

    @asynccontextmanager
    async def caller(self) -> AsyncIterator[Ask]:
        """Each caller keeps a connection."""
        async with connection(self._port) as client:

            async def ask(number: int) -> None:
                response = await client.ask(self._requests[number])
                assert response.startswith(b"HTTP/1.1 200 "), response

            yield ask


async def run(stores: Mapping[str, Store], folder: Path, size: Size) -> str:
    """Measure all cells; answer with the report.

    Raises:
        BooksDifferError: the books are wrong after a cell.
    """
    figures: dict[Cell, Figures] = {}
    fsync_s: list[float] = []
    async with AsyncExitStack() as stack:
        targets = await _targets(stack, stores, folder, size)
        served = dict.fromkeys(targets, 0)
        for each in range(size.rounds):
            fsync_s += fsyncs_s(folder)
            cells = list(_cells(targets, size))
            for cell in cells if each % 2 == 0 else reversed(cells):
                of_cell = figures.setdefault(cell, Figures())
                target = cell.level, cell.store
                served[target] += await _measure(targets[target], cell, size, of_cell)
                check(targets[target].engine, served[target])
    return _report(figures, fsync_s, size)


def check(engine: Engine, served: int) -> None:
    """Audit the books, and compare the charged requests with those that were served."""
    charged = charged_requests(engine)
    if charged != served:
        raise BooksDifferError(f"{served} requests were served, and {charged} charged.")
    assert_balanced(engine)


async def _targets(
    stack: AsyncExitStack, stores: Mapping[str, Store], folder: Path, size: Size
) -> dict[tuple[str, str], Target]:
    """Fill books for each level and store, and start what works on them."""
    minted = [mint(sha512(b"key %d" % number).digest()) for number in range(size.accounts + 1)]
    backend_url = await stack.enter_async_context(model_server(completion()))
    targets: dict[tuple[str, str], Target] = {}
    for name, store in stores.items():
        engine = open_engine(_new_books(store, folder / f"ledger-{name}"))
        stack.callback(engine.dispose)
        _fill(engine, minted)
        ledger = Ledger(engine, make_catalogue(plans=[PLAN]), system_clock)
        ledger.start()
        stack.push_async_callback(ledger.stop)
        targets["ledger", name] = LedgerTarget(ledger, engine, minted)

        at = folder / f"service-{name}"
        url = _new_books(store, at)
        service = stack.enter_context(
            RunningService(at, "", catalogue=catalogue({MODEL: backend_url}), database_url=url)
        )
        _fill(service.engine, minted)
        targets["HTTP", name] = ServiceTarget(service, minted)
    return targets


def _new_books(store: Store, folder: Path) -> str:
    folder.mkdir()
    return store.new_books(folder)


def _fill(engine: Engine, minted: Sequence[MintedKey]) -> None:
    """Add an account for each key, and the partitions that a service makes ahead."""
    period = period_of(system_clock(), make_catalogue().zone)
    with transaction(engine) as connection:
        prepare_partitions(connection, periods_from(period, 2))
        connection.execute(
            insert(accounts),
            [
                account_row(make_account(id=f"acc_{number:06}", plan=PLAN.name, period=period))
                for number in range(len(minted))
            ],
        )
        connection.execute(
            insert(keys),
            [
                key_row(make_key(id=key.id, account_id=f"acc_{number:06}", digest=key.digest))
                for number, key in enumerate(minted)
            ],
        )


def _cells(targets: Mapping[tuple[str, str], Target], size: Size) -> Iterator[Cell]:
    """List the cells; those that are compared come after one another."""
    for level in ("ledger", "HTTP"):
        for callers in size.callers:
            for store in (store for of_level, store in targets if of_level == level):
                for shape in ("hot", "spread"):
                    yield Cell(level, store, callers, shape)


async def _measure(target: Target, cell: Cell, size: Size, figures: Figures) -> int:
    """Let the callers ask without pause; answer with how many requests were served, warming up included."""
    numbers = repeat(HOT) if cell.shape == "hot" else _shuffled(size.accounts)
    counted_from_s = time.perf_counter() + size.warm_up_s
    until_s = counted_from_s + size.seconds
    latencies_s: list[float] = []
    warming_up = 0

    async def call() -> None:
        nonlocal warming_up
        counted = 0  # one at least, however slow
        async with target.caller() as ask:
            while (began_s := time.perf_counter()) < until_s or not counted:
                await ask(next(numbers))
                if began_s < counted_from_s:
                    warming_up += 1
                else:
                    counted += 1
                    latencies_s.append(time.perf_counter() - began_s)

    await asyncio.gather(*(call() for _ in range(cell.callers)))
    figures.add(time.perf_counter() - counted_from_s, latencies_s)
    return warming_up + len(latencies_s)


def _shuffled(count: int) -> Iterator[int]:
    """Take the accounts with a little each in an order without meaning, again and again."""
    numbers = list(range(1, count + 1))
    Random(SEED).shuffle(numbers)  # noqa: S311 - an order, no secret
    return cycle(numbers)


def _report(figures: Mapping[Cell, Figures], fsync_s: Sequence[float], size: Size) -> str:
    head = ("level", "store", "callers")
    shapes = ("hot", f"{size.accounts:,} accounts")
    columns = chain.from_iterable((f"{shape}: requests/s", "p50 ms", "p99 ms") for shape in shapes)
    rows = []
    for cell, hot in figures.items():
        if cell.shape == "hot":
            spread = figures[Cell(cell.level, cell.store, cell.callers, "spread")]
            ratio = f"{hot.per_second / spread.per_second:.2f}"
            rows.append((cell.level, cell.store, str(cell.callers), *_written(hot), *_written(spread), ratio))
    ratios = [
        (cell.level, cell.shape, str(cell.callers), f"{of_postgresql.per_second / of_sqlite.per_second:.2f}")
        for cell, of_postgresql in figures.items()
        if cell.store == "postgresql"
        and (of_sqlite := figures.get(Cell(cell.level, "sqlite", cell.callers, cell.shape))) is not None
    ]
    conditions = (
        f"{machine()}. A 4 KiB write and its fdatasync on the same disk took "
        f"{percentile(fsync_s, 50) * 1_000:.2f} ms (p50), {percentile(fsync_s, 99) * 1_000:.2f} ms (p99). "
        f"Each cell: {size.rounds} x {size.seconds:g} s. The machine's load at the end: {os.getloadavg()[1]:.1f}."
    )
    tables = (
        table((*head, *columns, "hot / spread"), rows),
        table(("level", "load", "callers", "PostgreSQL / SQLite"), ratios),
    )
    return "\n\n".join((conditions, *tables))


def _written(figures: Figures) -> tuple[str, str, str]:
    return f"{figures.per_second:,.0f}", f"{figures.percentile_ms(50):.1f}", f"{figures.percentile_ms(99):.1f}"


def main() -> None:
    """Measure as the arguments say; print the report, and write it where it is asked for."""
    parser = parser_of("bench.accounts", __doc__)
    parser.add_argument("--quick", action="store_true", help="half a second for each cell, once")
    parser.add_argument("--output", type=Path, help="a file to write the report to")
    arguments = parser.parse_args()
    with TemporaryDirectory(prefix="tarazu-bench-") as name, postgresql_server(Path(name)) as url:
        folder = Path(name)
        stores: dict[str, Store] = {"sqlite": SqliteStore(folder), "postgresql": PostgresqlStore(url)}
        report = asyncio.run(run(stores, folder, QUICK if arguments.quick else Size()))
    print(report)
    if arguments.output:
        arguments.output.write_text(report + "\n", "utf-8")


if __name__ == "__main__":
    main()
