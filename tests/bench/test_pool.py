"""The benchmark of the pool: it runs, and every cell is a figure."""

import asyncio

from bench.pool import Size, run

TINY = Size(backends=(1, 3), rounds=2, turns=5, waiting=5)


def test_every_cell_is_measured() -> None:
    """A row for each number of backends."""
    report = asyncio.run(run(TINY))
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in report.splitlines() if line.startswith("|")]
    measured = {row[0]: [float(figure) for figure in row[1:]] for row in rows[2:]}
    assert list(measured) == ["1", "3"]
    assert min(figure for row in measured.values() for figure in row[:4]) >= 0
