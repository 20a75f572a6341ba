"""Open a file that the operator has named, without waiting for ever for what is none."""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

HANDED = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")
"""Where a shell hands over what another program writes: `--config <(…)`, or /dev/stdin."""


def open_named(path: Path) -> BinaryIO:
    """Open a file for reading. A pipe is waited for only where this process was handed it, so that it has a writer.

    Raises:
        OSError: it cannot be opened, or it is a named pipe or a terminal.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        if stat.S_ISFIFO(os.fstat(descriptor).st_mode) and not os.path.abspath(path).startswith(HANDED):  # noqa: PTH100 - links stay
            raise OSError(errno.EINVAL, "it is a named pipe, which may have no writer")  # noqa: TRY301 - closed below
        if os.isatty(descriptor):
            raise OSError(errno.EINVAL, "it is a terminal")  # noqa: TRY301 - as above
        os.set_blocking(descriptor, True)
        return open(descriptor, "rb")  # noqa: PTH123 - it has no path any more
    except BaseException:
        os.close(descriptor)
        raise
