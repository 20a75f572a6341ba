"""The connections of this process at its port, on Linux: listed and cut off while no other thread of Python runs.

Python's own sockets let the other threads run at each call, and a busy event loop gives way after 5 ms only: to look
through some thousand connections took a minute. So the C library is called without that.
"""

import ctypes
import os
import re
import socket
import struct
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

Peer = tuple[str, str]
"""Address and port, as granian writes them into the scope of a request."""

_STATUS = Path("/proc/self/status")
_IN_USE_FILES = (Path("/proc/net/sockstat"), Path("/proc/net/sockstat6"))
_SLOTS = re.compile(rb"FDSize:\s*(\d+)")
_IN_USE = re.compile(rb"^TCP6?: inuse (\d+)", re.MULTILINE)
_FILE_BYTES_MAX = 65_536
_NAME_BYTES = 28
"""Of the longest name, `struct sockaddr_in6`."""
_RESET = struct.pack("ii", 1, 0)
"""`struct linger`: what waits to be sent is dropped."""

_libc = ctypes.PyDLL(None)


def are_known() -> bool:
    """Tell whether the system shows them."""
    return _STATUS.exists()


class OwnConnections:
    """Those of this process at one port. What it reads stays open, for the time when no file can be opened any more."""

    def __init__(self, port: int) -> None:
        self._port = str(port)
        self._status = os.open(_STATUS, os.O_RDONLY)
        # The second is there where there is IPv6.
        self._in_use = [os.open(file, os.O_RDONLY) for file in _IN_USE_FILES if file.exists()]

    def __repr__(self) -> str:
        return f"<OwnConnections at {self._port}>"

    def in_use(self) -> int:
        """Tell how many connections there are on this machine, or in the part of it that this process sees."""
        texts = [os.pread(file, _FILE_BYTES_MAX, 0) for file in self._in_use]
        return sum(int(number) for text in texts for number in _IN_USE.findall(text))

    def list(self) -> Iterator[tuple[Peer, int]]:
        """List the peer of each, and its number among the open files."""
        slots = _SLOTS.search(os.pread(self._status, _FILE_BYTES_MAX, 0))
        assert slots is not None, "Linux tells it of every process"
        for number in range(int(slots[1])):
            here = _name(_libc.getsockname, number)
            if here is not None and here[1] == self._port:
                peer = _name(_libc.getpeername, number)
                if peer is not None:
                    yield peer, number

    def close(self) -> None:
        """Let go of what it reads."""
        for file in (self._status, *self._in_use):
            os.close(file)


def cut(number: int, peer: Peer) -> bool:
    """End a connection at once, with what waits to be sent, if it is still the same; tell whether it was."""
    copy = _libc.dup(number)
    if copy < 0:
        return False
    try:
        if _name(_libc.getpeername, copy) != peer:
            return False
        _libc.setsockopt(copy, socket.SOL_SOCKET, socket.SO_LINGER, _RESET, len(_RESET))
        return bool(_libc.shutdown(copy, socket.SHUT_RDWR) == 0)
    finally:
        _libc.close(copy)


def _name(call: "ctypes._NamedFuncPointer", number: int) -> Peer | None:
    """Ask for a name of an open file; None where it is no socket, not connected, or closed meanwhile."""
    name = ctypes.create_string_buffer(_NAME_BYTES)
    if call(number, name, ctypes.byref(ctypes.c_uint32(_NAME_BYTES))) != 0:
        return None
    family, port = struct.unpack_from("=H", name)[0], struct.unpack_from("!H", name, 2)[0]
    if family == socket.AF_INET:
        return _address(socket.AF_INET, name.raw[4:8]), str(port)
    return (_address(socket.AF_INET6, name.raw[8:24]), str(port)) if family == socket.AF_INET6 else None


@lru_cache(maxsize=1_024)
def _address(family: int, packed: bytes) -> str:
    return socket.inet_ntop(family, packed)
