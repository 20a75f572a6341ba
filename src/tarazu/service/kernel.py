"""What Linux is asked for beyond Python's own modules. Elsewhere nothing happens, and the service does without."""

import ctypes
import sys
from contextlib import suppress
from pathlib import Path

PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
"""From Linux's prctl.h."""


def forbid_core_dumps() -> None:
    """Let no core dump, and no other process of the same user, show this process's memory, which holds keys."""
    _prctl(PR_SET_DUMPABLE, 0)


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
