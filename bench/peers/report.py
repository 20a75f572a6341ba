"""The figures of a run as people read them: tables, and how far Tarazu is from the yardstick and from the others."""

from collections.abc import Mapping, Sequence
from statistics import median

from msgspec import Struct

from bench.figures import MIB, percentile, table
from bench.peers.contenders import NGINX, OTHERS, POSTGRESQL, SQLITE
from bench.peers.wrk import Load

COMPARED = 64
"""The connections at which contenders are compared."""


class Result(Struct):
    """What was measured of one contender: its loads by the number of connections, one for each round."""

    does: str = ""
    loads: dict[int, list[Load]] = {}
    cpu_us: dict[int, list[float]] = {}
    """Of the processor, for one request."""
    memory_bytes: int = 0
    start_s: list[float] = []

    def per_second(self, connections: int) -> float:
        """Requests a second, the median of the rounds."""
        return median(load.per_second for load in self.loads[connections])


def report(results: Mapping[str, Result], fsync_s: Sequence[float], versions: Sequence[str]) -> str:
    """Write all of it as Markdown."""
    connections = sorted(next(iter(results.values())).loads)
    p50_ms, p99_ms = (percentile(fsync_s, percent) * 1_000 for percent in (50, 99))
    parts = [
        _rates(results, connections),
        _latencies(results, connections),
        _ratios(results, connections),
        _duties(results),
        f"fdatasync of one block on the disk of the books, in the same run: p50 {p50_ms:.2f} ms, p99 {p99_ms:.2f} ms.",
        f"Measured with {'; '.join(versions)}.",
    ]
    return "\n\n".join(parts)


def _rates(results: Mapping[str, Result], connections: Sequence[int]) -> str:
    head = [
        "",
        "of nginx",
        *(f"{each} conn., req/s" for each in connections),
        "core, us/req",
        "memory, MiB",
        "start, s",
    ]
    yardstick = results[NGINX].per_second(COMPARED)
    rows = [
        [
            name,
            f"{result.per_second(COMPARED) / yardstick:.3f}",
            *(f"{result.per_second(each):,.0f}" for each in connections),
            f"{median(result.cpu_us[COMPARED]):,.0f}",
            f"{result.memory_bytes / MIB:,.0f}",
            f"{median(result.start_s):.2f}",
        ]
        for name, result in results.items()
    ]
    return table(head, rows)


def _latencies(results: Mapping[str, Result], connections: Sequence[int]) -> str:
    head = ["", "", *(f"{each} conn., p50 / p99 ms" for each in connections)]
    rows = [
        [
            name,
            "",
            *(
                f"{median(load.p50_ms for load in result.loads[each]):,.2f} / "
                f"{median(load.p99_ms for load in result.loads[each]):,.2f}"
                for each in connections
            ),
        ]
        for name, result in results.items()
    ]
    return table(head, rows)


def _ratios(results: Mapping[str, Result], connections: Sequence[int]) -> str:
    ours = [name for name in (SQLITE, POSTGRESQL) if name in results]
    others = [name for name in OTHERS if name in results]
    head = ["times as many requests", "", *(f"{each} conn." for each in connections)]
    rows = [
        [f"{mine} : {other}", "", *(f"{_ratio(results, mine, other, each):,.1f}" for each in connections)]
        for mine in ours
        for other in others
    ]
    return table(head, rows) if rows else "No other was measured."


def _ratio(results: Mapping[str, Result], mine: str, other: str, connections: int) -> float:
    return results[mine].per_second(connections) / results[other].per_second(connections)


def _duties(results: Mapping[str, Result]) -> str:
    return table(
        ["", "does for each request, beside passing it on"], ([name, each.does] for name, each in results.items())
    )
