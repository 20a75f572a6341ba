"""Write what was measured: the services' figures, and PostgreSQL's."""

from collections.abc import Mapping

from bench.figures import MIB, table
from bench.scale import model
from bench.scale.cells import POSTGRESQL, Cell
from bench.scale.database import STATES
from bench.scale.measuring import Measured

_CELL_HEAD = ["store", "", "workers", "accounts", "requests before"]
_HEAD = [*_CELL_HEAD, "req/s", "p50, ms", "p99, ms", "us/req", "MiB a service"]
_DATABASE_HEAD = [
    *("", "workers", "accounts", "requests before", "us/req", "WAL, B/req", "batches/s", "req/batch"),
    *(f"{state}, ms" for state in STATES),
    "rows locked, ms",
]


def report(measured: Mapping[Cell, Measured], versions: str) -> str:
    """Write the tables, and what they were measured with."""
    parts = [table(_HEAD, [_row(cell, each) for cell, each in measured.items()])]
    rows = [_database_row(cell, each) for cell, each in measured.items() if cell.store == POSTGRESQL]
    if rows:
        parts += ["What PostgreSQL did meanwhile, by request and by batch:", table(_DATABASE_HEAD, rows)]
    if compared := model.compared(measured):
        parts += ["What the model says of the cells with shares, from one worker:", compared]
    parts += [text for text in (model.of_request_and_batch(measured), model.extrapolated(measured)) if text]
    return "\n\n".join([*parts, f"Measured with {versions}."])


def _row(cell: Cell, each: Measured) -> list[str]:
    return [
        cell.store,
        *_cell(cell),
        f"{each.per_second:,.0f}",
        f"{max(load.p50_ms for load in each.loads):,.1f}",
        f"{max(load.p99_ms for load in each.loads):,.1f}",
        f"{each.cpu_us:,.0f}",
        f"{each.memory_bytes / MIB:,.0f}",
    ]


def _cell(cell: Cell) -> list[str]:
    about = ["two services"] if cell.services > 1 else []
    if cell.share is not None:
        about.append(f"{cell.share:g} core each")
    return [", ".join(about), f"{cell.workers}", f"{cell.accounts:,}", f"{cell.requests:,}"]


def _database_row(cell: Cell, each: Measured) -> list[str]:
    use = each.database
    requests = each.per_second * use.seconds
    return [
        *_cell(cell),
        f"{use.cpu_s / requests * 1e6:,.0f}",
        f"{use.wal_bytes / requests:,.0f}",
        f"{use.transactions / use.seconds:,.0f}",
        f"{requests / use.transactions:,.1f}",
        *(f"{use.per_batch_ms(use.state_s.get(state, 0.0)):,.2f}" for state in STATES),
        f"{use.per_batch_ms(use.holding_s):,.2f}",
    ]
