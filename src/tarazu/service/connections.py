"""The connections of the service's port as Linux lists them."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

ESTABLISHED = 0x01
LISTENING = 0x0A
"""From Linux's tcp_states.h."""
_FILES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))


class PortState(Struct, frozen=True):
    """How many connections of a port are open, and how many are made and not yet accepted."""

    open: int
    waiting: int


def port_state(port: int) -> PortState | None:
    """Read the state of a port of this machine; None where the system does not tell."""
    lines = list(_lines(port))
    if not lines:
        return None
    is_open = sum(state == ESTABLISHED for state, _ in lines)
    return PortState(is_open, sum(waiting for state, waiting in lines if state == LISTENING))


@contextmanager
def borrowed(descriptor: int) -> Iterator[socket.socket]:
    """Use a socket by its number among the open files. It stays open, and no further file is opened for it.

    Raises:
        OSError: the number is of something else, or of nothing.
    """
    each = socket.socket(fileno=descriptor)
    try:
        yield each
    finally:
        each.detach()


def _lines(port: int) -> Iterator[tuple[int, int]]:
    """List the states of a port's sockets, each with what waits in it to be read, or accepted."""
    suffix = f":{port:04X}"
    for file in _FILES:
        with suppress(OSError):
            for line in file.read_text().splitlines()[1:]:
                _, local, _, state, queues, *_ = line.split()
                if local.endswith(suffix):
                    yield int(state, 16), int(queues.partition(":")[2], 16)
