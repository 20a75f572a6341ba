"""What benchmarks measure and how they write it: latencies, the disk's fsync, the machine, tables."""

import os
import platform
import time
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from statistics import quantiles

from msgspec import Struct

MIB = 1_024 * 1_024
BLOCK = bytes(4_096)
FSYNCS = 50
LIBRARIES = ("granian", "psycopg", "pysqlite3", "SQLAlchemy")


class Figures(Struct):
    """The requests of one cell: how long each took, over `seconds` of measuring."""

    seconds: float = 0.0
    latencies_s: list[float] = []

    def add(self, seconds: float, latencies_s: Iterable[float]) -> None:
        """Take in what one more round has measured."""
        self.seconds += seconds
        self.latencies_s.extend(latencies_s)

    @property
    def per_second(self) -> float:
        """Requests a second."""
        return len(self.latencies_s) / self.seconds

    def percentile_ms(self, percent: int) -> float:
        """The latency that `percent` of a hundred requests stay below."""
        return percentile(self.latencies_s, percent) * 1_000


def percentile(values: Sequence[float], percent: int) -> float:
    """Tell the value that `percent` of a hundred stay below."""
    return quantiles(values, n=100, method="inclusive")[percent - 1] if len(values) > 1 else values[0]


def fsyncs_s(folder: Path) -> list[float]:
    """Time writes of one block to the end of a file, each forced to the disk as a commit's is."""
    path = folder / "fsync"
    took_s = []
    with path.open("wb", buffering=0) as file:
        for _ in range(FSYNCS):
            file.write(BLOCK)
            began_s = time.perf_counter()
            os.fdatasync(file.fileno())
            took_s.append(time.perf_counter() - began_s)
    path.unlink()
    return took_s


def machine() -> str:
    """Name the machine and the versions in one line."""
    cpu = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    return (
        f"{os.cpu_count()} cores of {cpu}, Linux {platform.release()}; Python {platform.python_version()}, {libraries}"
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a Markdown table; all columns but the first two are figures, set to the right."""
    lines = [head, ["---" if place < 2 else "---:" for place in range(len(head))], *rows]  # noqa: PLR2004 - as said above
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
