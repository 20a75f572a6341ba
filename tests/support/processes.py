"""The processes of a running service, as the kernel shows and treats them."""

import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support.service import RunningService

KIB = 1024


def workers(service: RunningService) -> list[int]:
    """List the process ids of the workers."""
    main = service.process.pid
    children = Path(f"/proc/{main}/task/{main}/children").read_text().split()
    return [int(child) for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]


def kill_all(service: RunningService) -> None:
    """End all processes of the service as a power switch would: none of them gets to do anything more."""
    pids = [service.process.pid, *workers(service)]
    for number in (signal.SIGSTOP, signal.SIGKILL):  # stopped first, so that none sees another die
        for pid in pids:
            os.kill(pid, number)
    service.process.wait()


def has_ended(pid: int) -> bool:
    """Tell whether a process is no more."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


def open_files(pid: int) -> int:
    """Count the open files of a process, connections among them."""
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def peak_bytes(pid: int) -> int:
    """Tell the most memory that a process has ever had."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * KIB


@contextmanager
def no_room_on_disk(pid: int) -> Iterator[None]:
    """Let no file of the process grow, nor be written at all beyond its first byte, as on a disk that fails."""
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (1, before[1]))
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
