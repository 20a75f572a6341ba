"""A server with all its processes, as the kernel counts them: the processor's time and memory. And where they run."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

from tarazu.service.worker import WORKER_NAME

CORE, OTHER_CORE = 0, 1
"""Where what is measured runs, and where the model server, a database and the load do."""
KIB = 1_024

T = TypeVar("T")


@contextmanager
def on_cores(cores: set[int]) -> Iterator[None]:
    """Start every process in the block on these cores alone, and it stays there; the caller goes back afterwards."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def starting_on(cores: set[int], server: AbstractContextManager[T]) -> Iterator[T]:
    """Run a server, whose processes are started on these cores alone, until the block ends."""
    with ExitStack() as stack:
        with on_cores(cores):
            value = stack.enter_context(server)
        yield value


def processes(pid: int) -> list[int]:
    """List a process and all that come from it, whichever of its threads has begun them."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in _read(task / "children").split():
            found += processes(int(child))
    return found


def workers(pid: int) -> list[int]:
    """List the processes that a running service has begun to serve in, by their name."""
    return [each for each in processes(pid)[1:] if _read(Path(f"/proc/{each}/comm")) == f"{WORKER_NAME}\n"]


def cpu_s(pid: int) -> float:
    """Tell how long the processes have kept a processor busy, for themselves and in the kernel."""
    ticks = 0
    for each in processes(pid):
        user, system = _read(Path(f"/proc/{each}/stat")).rpartition(")")[2].split()[11:13]
        ticks += int(user) + int(system)
    return ticks / os.sysconf("SC_CLK_TCK")


def memory_bytes(pid: int) -> int:
    """Tell the memory that the processes have; what they share with others counts by its share."""
    return sum(map(share_bytes, processes(pid)))


def share_bytes(pid: int) -> int:
    """Tell the memory that this process alone has; what it shares with others counts by its share."""
    return KIB * int(_read(Path(f"/proc/{pid}/smaps_rollup")).split("\nPss:")[1].split()[0])


def resident_bytes(pid: int) -> int:
    """Tell the memory that this process alone has, what it shares with others included."""
    return KIB * int(_read(Path(f"/proc/{pid}/status")).split("\nVmRSS:")[1].split()[0])


def _read(path: Path) -> str:
    return path.read_text("utf-8")
