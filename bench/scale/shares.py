"""Shares of a core: what a process may use of all processors together, however much is free. By cgroups, version 1.

The kernel lets the process run for a millisecond, and stops it until the share has grown so far again.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

GROUPS = Path("/sys/fs/cgroup/cpu")
RUN_US = 1_000
"""The shortest that the kernel knows: whoever waits for the process waits for its pauses too."""


class NoSharesError(Exception):
    """This machine lets nobody here give shares."""


@contextmanager
def each_having(pids: list[int], share: float | None) -> Iterator[None]:
    """Let each process, with all its threads, have this share until the block ends; with None all there is.

    Raises:
        NoSharesError: the groups are not there, or cannot be written to.
    """
    made: list[Path] = []
    try:
        for number, pid in enumerate(pids if share is not None else ()):
            made.append(_group(f"tarazu-bench-{os.getpid()}-{number}", share or 0))
            _write(made[-1] / "cgroup.procs", pid)
        yield
    finally:
        for group in made:
            for pid in map(int, (group / "cgroup.procs").read_text().split()):
                with suppress(NoSharesError):  # it has ended
                    _write(GROUPS / "cgroup.procs", pid)
            group.rmdir()


def assert_possible() -> None:
    """See whether shares can be given here.

    Raises:
        NoSharesError: they cannot.
    """
    _group(f"tarazu-bench-{os.getpid()}", 0.5).rmdir()


def _group(name: str, share: float) -> Path:
    group = GROUPS / name
    try:
        group.mkdir()
    except OSError as error:
        raise NoSharesError(f"{GROUPS}: {error.strerror}") from None
    try:
        _write(group / "cpu.cfs_period_us", round(RUN_US / share))
        _write(group / "cpu.cfs_quota_us", RUN_US)
    except NoSharesError:
        group.rmdir()
        raise
    return group


def _write(path: Path, value: int) -> None:
    try:
        path.write_text(str(value))
    except OSError as error:
        raise NoSharesError(f"{path}: {error.strerror}") from None
