"""Watch over the connections that a worker has taken: no address may have so many that others find no place.

Granian takes them by itself and asks nobody. So a thread looks at the worker's own sockets, and only where there are
many; what one address has beyond its bound is cut off, the newest first.
"""

import os
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from pathlib import Path

import structlog

from tarazu.domain.addresses import place_of

LOOK_S = 0.25
CALM_S = 5.0
"""Where a look has found no crowd, the next one may wait so long, unless many more have come."""
CALM_SHARE = 0.25
"""So many are many more: a part of what one address may have."""
ROOM_SHARE = 0.875
"""The part of all places that untrusted addresses may have together: the rest is for proxies, and for this machine."""
TOLD_EVERY_S = 10.0
SOCKETS = Path("/proc/self/fd")
_RESET = struct.pack("ii", 1, 0)

Peer = tuple[str, int]

log = structlog.get_logger()


class Crowds:
    """The watch over one worker's connections at `port`, of which there are at most `connections`.

    An address may have `of_address` of them; addresses in the networks `trusted` may have any number.
    """

    def __init__(self, port: int, *, connections: int, of_address: int, trusted: Iterable[str]) -> None:
        self._port = port
        self._room = int(connections * ROOM_SHARE)
        self._of_address = min(of_address, self._room)
        self._trusted = tuple(ip_network(network, strict=False) for network in trusted)
        self._seen: dict[Peer, int] = {}
        """The connections, each with the look that has seen it first."""
        self._looks = 0
        self._calm_until_s = 0.0
        self._calm_below = 0
        self._untold = 0
        self._told_at_s = float("-inf")

    def __repr__(self) -> str:
        return f"<Crowds at {self._port}, {self._of_address} of an address>"

    def start(self) -> None:
        """Watch, in a thread of its own, for as long as the process lives; where the system shows its open files."""
        if SOCKETS.is_dir():
            threading.Thread(target=self._watch, name="crowds", daemon=True).start()

    def look(self) -> int:
        """Cut off what is too many, and tell how many that were."""
        self._looks += 1
        found = dict(_connections(self._port))
        self._seen = {peer: self._seen.get(peer, self._looks) for peer in found}
        owner_of = {host: self._owner(host) for host in {host for host, _ in found}}
        of_owner: dict[str, list[Peer]] = {}
        for peer in found:
            if (owner := owner_of[peer[0]]) is not None:
                of_owner.setdefault(owner, []).append(peer)
        bound = fair_bound({owner: len(peers) for owner, peers in of_owner.items()}, self._of_address, self._room)
        cut = 0
        for owner, peers in of_owner.items():
            newest = sorted(peers, key=self._seen.__getitem__)[bound:]
            cut += sum(_cut(found[peer], peer) for peer in newest)
            if newest:
                self._tell(owner, len(newest))
        return cut

    def _watch(self) -> None:
        while True:
            time.sleep(LOOK_S)
            lowest_free = _lowest_free()
            now_s = time.monotonic()
            if lowest_free < self._of_address or (now_s < self._calm_until_s and lowest_free < self._calm_below):
                continue
            if not self.look():
                self._calm_until_s = now_s + CALM_S
                self._calm_below = lowest_free + int(self._of_address * CALM_SHARE)

    def _owner(self, host: str) -> str | None:
        """Name the address that a connection is counted by; None: it is not counted."""
        address = ip_address(host.partition("%")[0])
        if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        if any(_is_in(address, network) for network in self._trusted):
            return None
        return place_of(host)

    def _tell(self, owner: str, number: int) -> None:
        self._untold += number
        now_s = time.monotonic()
        if now_s - self._told_at_s >= TOLD_EVERY_S:
            log.warning("connections_cut", address=owner, connections=self._untold)
            self._told_at_s, self._untold = now_s, 0


def fair_bound(counts: Mapping[str, int], of_address: int, room: int) -> int:
    """Tell how many connections each address may keep: fewer than `of_address` where all together have no room."""
    bound = of_address
    sizes = Counter(counts.values())
    while bound > 1 and sum(min(size, bound) * owners for size, owners in sizes.items()) > room:
        bound //= 2
    return bound


def _is_in(address: object, network: IPv4Network | IPv6Network) -> bool:
    return address in network


def _lowest_free() -> int:
    """Tell the lowest number that no open file has: where it is high, so many are open."""
    try:
        free = os.open(os.sep, os.O_RDONLY)
    except OSError:  # none is free
        return 2**31
    os.close(free)
    return free


def _connections(port: int) -> Iterable[tuple[Peer, int]]:
    """List this process's connections at its port: the peer of each, and its number among the open files."""
    for name in os.listdir(SOCKETS):  # noqa: PTH208 - thousands of names, which need no paths
        with suppress(OSError):  # it is no socket, is not connected, or has been closed meanwhile
            # Of either kind: this one has room for both kinds of addresses.
            found = socket.socket(socket.AF_INET6, socket.SOCK_STREAM, 0, fileno=int(name))
            try:
                name_here = found.getsockname()
                if isinstance(name_here, tuple) and name_here[1] == port:
                    yield found.getpeername()[:2], int(name)
            finally:
                found.detach()


def _cut(number: int, peer: Peer) -> bool:
    """End a connection at once, with what waits to be sent, if it is still the same."""
    with suppress(OSError), socket.socket(socket.AF_INET6, socket.SOCK_STREAM, 0, fileno=os.dup(number)) as connection:
        if connection.getpeername()[:2] == peer:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            connection.shutdown(socket.SHUT_RDWR)
            return True
    return False
