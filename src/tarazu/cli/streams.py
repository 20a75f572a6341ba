"""The standard streams of a command: closed ones, full ones, and ones whose reader has gone."""

import errno
import os
import sys

OUTPUT = 1
ERRORS = 2
UNWRITABLE = frozenset({errno.ENOSPC, errno.EBADF, errno.EIO, errno.EFBIG, errno.EDQUOT, errno.EINVAL})
"""What the system says of an output that takes nothing more."""


def prepare_streams() -> None:
    """Have all three streams there, such that read and write wait, and what they cannot show written otherwise.

    Where one is closed, the next file that is opened would take its number, and get what is printed. What is written
    to a closed standard output fails, as it should; messages to a closed standard error are given up. Of a stream that
    does not wait, as some programs leave a terminal behind, Python would read or write a part, and say nothing. It
    waits from now on for all who share it.
    """
    for number, flags in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, flags)  # takes the lowest number that is free
        os.set_blocking(number, True)
    if sys.stdin is None:
        sys.stdin = open(0, closefd=False)  # noqa: SIM115 - it stays open until the process ends
    if sys.stdout is None:
        sys.stdout = open(OUTPUT, "w", closefd=False)  # noqa: SIM115 - as above
    if sys.stderr is None:
        sys.stderr = open(ERRORS, "w", closefd=False)  # noqa: SIM115 - as above
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character shows its number; nothing fails over it.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # a real process has text streams


def give_output_up() -> None:
    """Let what is still buffered go nowhere: it must not fail again when the interpreter ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def is_unwritable(error: OSError) -> bool:
    """Tell whether an error is about the output: others name a file, or say another thing."""
    return error.filename is None and error.errno in UNWRITABLE
