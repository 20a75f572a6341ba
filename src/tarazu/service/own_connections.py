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
_FAMILY, _PORT = struct.Struct("=H"), struct.Struct("!H")
_RESET = struct.pack("ii", 1, 0)
"""`struct linger`: what waits to be sent is dropped."""

_libc = ctypes.PyDLL(None)


def are_known() -> bool:
    """Tell whether the system shows them."""
    return _STATUS.exists()


class OwnConnections:
    """Those of this process at one port. What it reads stays open, for the time when no file can be opened any more."""

    def __init__(self, port: int) -> None:
        self.port = port
        # How the names of its sockets begin: the family and the port.
        self._here = {_FAMILY.pack(family) + _PORT.pack(port) for family in (socket.AF_INET, socket.AF_INET6)}
        self.without_peer: list[int] = []
        """What else is at the port, by its number among the open files: what listens, or is about to be closed."""
        self._status = os.open(_STATUS, os.O_RDONLY)
        # The second is there where there is IPv6.
        self._in_use = [os.open(file, os.O_RDONLY) for file in _IN_USE_FILES if file.exists()]

    def __repr__(self) -> str:
        return f"<OwnConnections at {self.port}>"

    def in_use(self) -> int:
        """Tell how many connections there are on this machine, or in the part of it that this process sees."""
        texts = [os.pread(file, _FILE_BYTES_MAX, 0) for file in self._in_use]
        return sum(int(number) for text in texts for number in _IN_USE.findall(text))

    def list(self) -> Iterator[tuple[Peer, int]]:
        """List the peer of each, and its number among the open files; those that have none are `without_peer` then."""
        self.without_peer.clear()
        slots = _SLOTS.search(os.pread(self._status, _FILE_BYTES_MAX, 0))
        assert slots is not None, "Linux tells it of every process"
        name = _Name()
        for number in range(int(slots[1])):
            if name.ask(_libc.getsockname, number) and name.packed[:4] in self._here:
                if name.ask(_libc.getpeername, number):
                    yield name.peer, number
                else:
                    self.without_peer.append(number)

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
        name = _Name()
        if not name.ask(_libc.getpeername, copy) or name.peer != peer:
            return False
        _libc.setsockopt(copy, socket.SOL_SOCKET, socket.SO_LINGER, _RESET, len(_RESET))
        return bool(_libc.shutdown(copy, socket.SHUT_RDWR) == 0)
    finally:
        _libc.close(copy)


class _Name:
    """A name of an open file, as the kernel writes it: `struct sockaddr_in` or `sockaddr_in6`."""

    def __init__(self) -> None:
        self._buffer = ctypes.create_string_buffer(_NAME_BYTES)
        self._length = ctypes.c_uint32()
        self._length_at = ctypes.byref(self._length)

    def ask(self, call: "ctypes._NamedFuncPointer", number: int) -> bool:
        """Ask for it; False where the file is no socket, has no such name, or has been closed meanwhile."""
        self._length.value = _NAME_BYTES
        return bool(call(number, self._buffer, self._length_at) == 0)

    @property
    def packed(self) -> bytes:
        """The name as it is: the family, the port, and the address behind them."""
        return self._buffer.raw

    @property
    def peer(self) -> Peer:
        """Write it as granian does."""
        packed = self.packed
        family, port = _FAMILY.unpack_from(packed)[0], _PORT.unpack_from(packed, 2)[0]
        return _address(family, packed[4:8] if family == socket.AF_INET else packed[8:24]), str(port)


@lru_cache(maxsize=1_024)
def _address(family: int, packed: bytes) -> str:
    return socket.inet_ntop(family, packed)
