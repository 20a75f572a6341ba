"""The model of docs/scaling.md: what follows for other cells, and for many cores, from one worker's cell. Pure."""

from collections.abc import Mapping
from statistics import linear_regression

from msgspec import Struct

from bench.figures import table
from bench.scale.cells import POSTGRESQL, Cell
from bench.scale.measuring import Measured

CORES = (10, 100, 1_000)
CONNECTIONS_OF_A_WORKER = 4
MB = 1_000_000


class Bounds(Struct, frozen=True):
    """What bounds several workers together, in requests a second: each of them, and the row of one account."""

    workers: float
    row: float | None

    @property
    def per_second(self) -> float:
        """The lower one."""
        return self.workers if self.row is None else min(self.workers, self.row)


class Costs(Struct, frozen=True):
    """What a request costs: microseconds of a core at the worker and at PostgreSQL, bytes of its log, its batch."""

    worker_us: float
    database_us: float
    wal_bytes: float
    batches: float

    def per_second(self, cores: int) -> float:
        """Tell how many requests cores serve that are divided as the two need them."""
        return cores * 1e6 / (self.worker_us + self.database_us)


def bounds(cell: Cell, one: Measured) -> Bounds:
    """Tell what bounds a cell, from one worker of its kind.

    While the row of the only account is locked for one batch, all others wait. So when one worker has it locked for a
    part of its time, all together serve at most so many times as much as the part is contained in one.
    """
    locked = one.database.holding_s / one.database.seconds
    return Bounds(one.per_second * cell.all_workers, one.per_second / locked if cell.accounts == 1 else None)


def costs(one: Measured) -> Costs:
    """Tell what a request costs where one worker was measured."""
    use = one.database
    requests = one.per_second * use.seconds
    return Costs(one.cpu_us, use.cpu_s / requests * 1e6, use.wal_bytes / requests, use.transactions / requests)


def of_request_and_batch(measured: Mapping[Cell, Measured]) -> str | None:
    """Divide the costs into a request's and a batch's, by the cells of one account and 1, 2 and 4 workers.

    The same callers make ever smaller batches there.
    """
    found = [
        costs(each)
        for cell, each in measured.items()
        if (cell.store, cell.share, cell.accounts, cell.requests) == (POSTGRESQL, None, 1, 0)
    ]
    if len({cost.batches for cost in found}) < 2:  # noqa: PLR2004 - a line has two points
        return None
    batches = [cost.batches for cost in found]
    worker = linear_regression(batches, [cost.worker_us for cost in found])
    database = linear_regression(batches, [cost.database_us for cost in found])
    return (
        f"By the lines that fit the cells of one account best a request takes {worker.intercept:,.0f} us at the worker "
        f"and {database.intercept:,.0f} us at PostgreSQL, and a batch {worker.slope:,.0f} us "
        f"and {database.slope:,.0f} us."
    )


def compared(measured: Mapping[Cell, Measured]) -> str | None:
    """Write the model beside what was measured, where there is a cell of one worker to go by."""
    rows = []
    for cell, each in measured.items():
        one = measured.get(Cell(store=POSTGRESQL, accounts=cell.accounts, share=cell.share))
        if cell.store != POSTGRESQL or cell.share is None or cell.all_workers == 1 or one is None:
            continue
        bound = bounds(cell, one)
        rows.append(
            [
                f"{cell.services} x {cell.workers}",
                f"{cell.accounts:,}",
                f"{bound.workers:,.0f}",
                "-" if bound.row is None else f"{bound.row:,.0f}",
                f"{each.per_second:,.0f}",
                f"{each.per_second / bound.per_second:.2f}",
                f"{each.per_second / one.per_second:.2f}",
            ]
        )
    head = [
        "services x workers",
        "accounts",
        "the workers' bound",
        "the row's bound",
        "measured",
        "of the bound",
        "of one",
    ]
    return table(head, rows) if rows else None


def extrapolated(measured: Mapping[Cell, Measured]) -> str | None:
    """Write what many cores would do at the costs of one worker that has a core, asked by the most accounts."""
    free = [cell for cell in measured if cell.store == POSTGRESQL and cell.share is None and cell.all_workers == 1]
    if not free:
        return None
    cell = max(free, key=lambda each: (each.accounts, -each.requests))
    cost = costs(measured[cell])
    rows = []
    for cores in CORES:
        per_second = cost.per_second(cores)
        workers = per_second * cost.worker_us / 1e6
        rows.append(
            [
                f"{cores:,}",
                f"{per_second:,.0f}",
                f"{workers:,.0f}",
                f"{cores - workers:,.0f}",
                f"{per_second * cost.wal_bytes / MB:,.0f}",
                f"{per_second * cost.batches:,.0f}",
                f"{max(workers, 1) * CONNECTIONS_OF_A_WORKER:,.0f}",
            ]
        )
    head = ["cores", "req/s", "workers' cores", "PostgreSQL's cores", "WAL, MB/s", "batches/s", "connections"]
    return (
        f"At {cost.worker_us:,.0f} us of a worker's core, {cost.database_us:,.0f} us of PostgreSQL's and "
        f"{cost.wal_bytes:,.0f} bytes of its log for a request ({cell.accounts:,} accounts):\n\n{table(head, rows)}"
    )
