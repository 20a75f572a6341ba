"""What a socket that listens sees of those who connect, by the packet filter that Linux has for each socket."""

import ctypes
import os
import socket
import struct
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from ipaddress import IPv4Address, ip_network
from itertools import islice
from pathlib import Path

from tarazu.service.connections import borrowed

SO_ATTACH_FILTER, SO_LOCK_FILTER = 26, 44
_OPEN_FILES = Path("/proc/self/fd")
_filtering = threading.Lock()

Instruction = tuple[int, int, int, int]
"""One of the kernel's packet filter: code, jump if true, jump if false, operand."""
_BYTE, _WORD, _STORE, _STORED, _AND, _EQUALS, _HAS, _SKIP, _END = 0x30, 0x20, 0x02, 0x60, 0x54, 0x15, 0x45, 0x05, 0x06
_FLAGS, _SYN = 13, 0x02
"""The byte of the flags in the TCP header, where a packet begins for the filter; the one of a packet that begins."""
_IP = 0xFFF00000
"""Where the header of IP begins."""
_VERSION, _VERSION_4 = 0xF0, 0x40
_SOURCE_4, _SOURCE_6 = _IP + 12, _IP + 8
_DROP, _KEEP = (_END, 0, 0, 0), (_END, 0, 0, 0xFFFFFFFF)
_BEGINS = ((_BYTE, 0, 0, _FLAGS), (_HAS, 1, 0, _SYN), _KEEP)
"""Go on with a packet that begins a connection, and keep all others."""
SHUT_OUT_MAX = 128
"""Addresses in one filter: Linux gives all filters of a socket some 20 KiB."""


def take_no_more(port: int) -> None:
    """Let the sockets of this process that listen at the port see no new connection; those that are made are kept.

    When a socket that listens is closed, the kernel cuts what nobody has accepted yet. With nothing new coming, there
    is a moment without any. Who connects meanwhile hears nothing, and tries again after a second.
    """
    open_files = map(int, os.listdir(_OPEN_FILES) if _OPEN_FILES.exists() else ())  # noqa: PTH208 - numbers
    for each in _listening(open_files):
        if each.getsockname()[1] == port:
            with suppress(OSError), _filtering:
                _filter(each, (*_BEGINS, _DROP))
                each.setsockopt(socket.SOL_SOCKET, SO_LOCK_FILTER, 1)


def shut_out(listeners: Iterable[int], owners: Iterable[str]) -> bool:
    """Let sockets that listen see no new connection from these addresses and networks, from all others as before.

    Who connects from there hears nothing, and tries again after a second. Of many addresses the first SHUT_OUT_MAX
    count. A socket that takes no more stays so. Tells whether the system has done it.
    """
    program = _shutting(islice(owners, SHUT_OUT_MAX))
    try:
        for each in _listening(listeners):
            with _filtering:
                _filter(each, program)
    except OSError:
        return False
    return True


def _listening(descriptors: Iterable[int]) -> Iterator[socket.socket]:
    """Give those of the open files that are sockets which listen."""
    for descriptor in descriptors:
        with suppress(OSError), borrowed(descriptor) as each:
            if each.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                yield each


def _shutting(owners: Iterable[str]) -> tuple[Instruction, ...]:
    of_4, of_6 = list[Instruction](), list[Instruction]()
    for network in map(ip_network, owners):
        address = network.network_address
        if isinstance(address, IPv4Address):
            of_4 += [(_EQUALS, 0, 1, int(address)), _DROP]
        else:
            high, low = divmod(int(address) >> 64, 1 << 32)
            of_6 += [(_STORED, 0, 0, 0), (_EQUALS, 0, 3, high), (_STORED, 0, 0, 1), (_EQUALS, 0, 1, low), _DROP]
    return (
        *_BEGINS,
        (_BYTE, 0, 0, _IP),
        (_AND, 0, 0, _VERSION),
        (_EQUALS, 1, 0, _VERSION_4),
        (_SKIP, 0, 0, 2 + len(of_4)),
        (_WORD, 0, 0, _SOURCE_4),
        *of_4,
        _KEEP,
        (_WORD, 0, 0, _SOURCE_6),
        (_STORE, 0, 0, 0),
        (_WORD, 0, 0, _SOURCE_6 + 4),
        (_STORE, 0, 0, 1),
        *of_6,
        _KEEP,
    )


def _filter(listener: socket.socket, program: Sequence[Instruction]) -> None:
    memory = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *instruction) for instruction in program))
    listener.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HL", len(program), ctypes.addressof(memory)))
