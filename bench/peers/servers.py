"""Servers that are measured, as processes: started, waited for, and stopped with all that comes from them."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

START_TIMEOUT_S = 120
STOP_TIMEOUT_S = 20
POLL_S = 0.02
LOG_TAIL_CHARACTERS = 2_000


class ServerError(Exception):
    """A server could not be started; says what it has written last."""


@contextmanager
def running(
    command: Sequence[str], port: int, *, log: Path, environ: Mapping[str, str] | None = None
) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a server until the block ends, which begins when it takes connections.

    Raises:
        ServerError: it has ended, or takes none in time.
    """
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, **(environ or {})},
            cwd=log.parent,
            start_new_session=True,  # so that it can be stopped with all its processes
        )
    try:
        _wait(process, port, log)
        yield process
    finally:
        _stop(process)


def _wait(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    until_s = time.monotonic() + START_TIMEOUT_S
    while not _is_listening(port):
        if process.poll() is not None or time.monotonic() >= until_s:
            written = log.read_text("utf-8", "replace")[-LOG_TAIL_CHARACTERS:]
            raise ServerError(f"{process.args!r} takes no connections; it wrote: {written}")
        time.sleep(POLL_S)


def _is_listening(port: int) -> bool:
    with socket.socket() as caller:
        return caller.connect_ex(("127.0.0.1", port)) == 0


def _stop(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(STOP_TIMEOUT_S)
    with suppress(ProcessLookupError):  # all have ended
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
