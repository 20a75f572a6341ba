"""The figures of a run as people read them: tables, and how far Tarazu is from the yardstick and from the others."""

from collections.abc import Iterator, Mapping, Sequence
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
    stopped_at: list[int] = []
    """The connections over which a request failed, or none was answered; it was asked nothing more in that round."""

    def per_second(self, connections: int) -> float | None:
        """Requests a second, the median of the rounds; None where it has answered in none."""
        return _median([load.per_second for load in self.loads.get(connections, [])])


def report(results: Mapping[str, Result], fsync_s: Sequence[float], versions: Sequence[str]) -> str:
    """Write all of it as Markdown."""
    connections = sorted(results[NGINX].loads)
    p50_ms, p99_ms = (percentile(fsync_s, percent) * 1_000 for percent in (50, 99))
    parts = [
        _rates(results, connections),
        _latencies(results, connections),
        _ratios(results, connections),
        *_stops(results),
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
    rows = [
        [
            name,
            _figure(_ratio(results, name, NGINX, COMPARED), 3),
            *(_figure(result.per_second(each), 0) for each in connections),
            _figure(_median(result.cpu_us.get(COMPARED, [])), 0),
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
                f"{_figure(_median([load.p50_ms for load in loads]), 2)} / "
                f"{_figure(_median([load.p99_ms for load in loads]), 2)}"
                for loads in (result.loads.get(each, []) for each in connections)
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
        [f"{mine} : {other}", "", *(_figure(_ratio(results, mine, other, each), 1) for each in connections)]
        for mine in ours
        for other in others
    ]
    return table(head, rows) if rows else "No other was measured."


def _ratio(results: Mapping[str, Result], mine: str, other: str, connections: int) -> float | None:
    one, another = results[mine].per_second(connections), results[other].per_second(connections)
    return None if one is None or another is None else one / another


def _median(values: Sequence[float]) -> float | None:
    return median(values) if values else None


def _figure(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"


def _stops(results: Mapping[str, Result]) -> Iterator[str]:
    for name, result in results.items():
        if result.stopped_at:
            over = " and ".join(map(str, result.stopped_at))
            yield f"{name} stopped answering well in {len(result.stopped_at)} of the rounds: over {over} connections."


def _duties(results: Mapping[str, Result]) -> str:
    return table(
        ["", "does for each request, beside passing it on"], ([name, each.does] for name, each in results.items())
    )
