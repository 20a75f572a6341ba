"""The connections of the service's port as Linux lists them, and how a worker takes no more of them."""

import ctypes
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

ESTABLISHED = 0x01
LISTENING = 0x0A
"""From Linux's tcp_states.h."""
SO_ATTACH_FILTER = 26
_FILES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))

_FLAGS_OFFSET, _SYN = 13, 0x02
_DROP_SYN = (
    (0x30, 0, 0, _FLAGS_OFFSET),  # load the byte of the flags in the TCP header
    (0x45, 0, 1, _SYN),  # is SYN among them?
    (0x06, 0, 0, 0),  # then drop the packet
    (0x06, 0, 0, 0xFFFFFFFF),  # else keep it
)
"""A program of the kernel's packet filter, as (code, jump if true, jump if false, operand)."""


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


def take_no_more(port: int) -> None:
    """Let the sockets of this process that listen at the port see no new connection; those that are made are kept.

    When a socket that listens is closed, the kernel cuts what nobody has accepted yet. With nothing new coming, there
    is a moment without any. Who connects meanwhile hears nothing, and tries again after a second.
    """
    for descriptor in map(int, os.listdir("/proc/self/fd") if _FILES[0].exists() else ()):  # noqa: PTH208 - numbers
        with suppress(OSError), borrowed(descriptor) as each:
            if each.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) and each.getsockname()[1] == port:
                _filter(each)


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


def _filter(listener: socket.socket) -> None:
    program = b"".join(struct.pack("HBBI", *instruction) for instruction in _DROP_SYN)
    memory = ctypes.create_string_buffer(program)
    listener.setsockopt(
        socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HL", len(_DROP_SYN), ctypes.addressof(memory))
    )


def _lines(port: int) -> Iterator[tuple[int, int]]:
    """List the states of a port's sockets, each with what waits in it to be read, or accepted."""
    suffix = f":{port:04X}"
    for file in _FILES:
        with suppress(OSError):
            for line in file.read_text().splitlines()[1:]:
                _, local, _, state, queues, *_ = line.split()
                if local.endswith(suffix):
                    yield int(state, 16), int(queues.partition(":")[2], 16)
