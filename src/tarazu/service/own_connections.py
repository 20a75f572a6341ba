"""The connections of this process at its port, on Linux: listed and cut off while no other thread of Python runs.

Python's own sockets let the other threads run at each call, and a busy event loop gives way after 5 ms only: to look
through some thousand connections took a minute. So the C library is called without that.
"""

import ctypes
import re
import socket
import struct
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

Peer = tuple[str, int]
"""Address and port."""

_STATUS = Path("/proc/self/status")
_IN_USE = re.compile(rb"^TCP6?: inuse (\d+)", re.MULTILINE)
_IN_USE_FILES = (Path("/proc/net/sockstat"), Path("/proc/net/sockstat6"))
_SLOTS = re.compile(rb"FDSize:\s*(\d+)")
_NAME_BYTES = 28
"""Of the longest name, `struct sockaddr_in6`."""
_RESET = struct.pack("ii", 1, 0)
"""`struct linger`: what waits to be sent is dropped."""

_libc = ctypes.PyDLL(None)


def are_known() -> bool:
    """Tell whether the system shows them."""
    return _STATUS.exists()


def connections_in_use() -> int:
    """Tell how many connections there are on this machine, or where this process sees a part of it, in that part."""
    texts = [file.read_bytes() for file in _IN_USE_FILES if file.exists()]  # the second where there is IPv6
    return sum(int(number) for text in texts for number in _IN_USE.findall(text))


def own_connections(port: int) -> Iterator[tuple[Peer, int]]:
    """List those at this port: the peer of each, and its number among the open files."""
    slots = _SLOTS.search(_STATUS.read_bytes())
    assert slots is not None, "Linux tells it of every process"
    for number in range(int(slots[1])):
        here = _name(_libc.getsockname, number)
        if here is not None and here[1] == port and (peer := _name(_libc.getpeername, number)) is not None:
            yield peer, number


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
        return _address(socket.AF_INET, name.raw[4:8]), port
    return (_address(socket.AF_INET6, name.raw[8:24]), port) if family == socket.AF_INET6 else None


@lru_cache(maxsize=1_024)
def _address(family: int, packed: bytes) -> str:
    return socket.inet_ntop(family, packed)
