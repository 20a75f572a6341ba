"""What Linux is asked for beyond Python's own modules. Elsewhere nothing happens, and the service does without."""

import ctypes
import resource
import sys
from contextlib import suppress
from pathlib import Path

CORE_BYTES_MAX = 1
"""Less than any core dump has. With 0 Linux still hands dumps to a program that collects them, with 1 it does not."""
PR_SET_CHILD_SUBREAPER = 36
"""From Linux's prctl.h."""


def forbid_core_dumps() -> None:
    """Let no core dump show this process's memory, which holds keys, nor that of a process that it starts."""
    with suppress(OSError, ValueError):  # a limit that is lower already
        resource.setrlimit(resource.RLIMIT_CORE, (CORE_BYTES_MAX, CORE_BYTES_MAX))


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def name_process(name: str) -> None:
    """Choose what `ps -o comm` and `top` show; the kernel keeps 15 characters."""
    with suppress(OSError):
        Path("/proc/self/comm").write_text(name)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
