"""Watch over the connections that a worker has taken: no address may have so many that others find no place.

Granian takes them by itself and asks nobody. So a thread looks at the worker's own sockets, and only where there are
many; what one address has beyond its bound is cut off, the newest first, and for a second it makes no new ones. Whoever
waits for a completion is let be: its account would pay for a reply that cannot come, and what it may ask at once has a
bound of its own.
"""

import threading
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Container, Iterable, Mapping
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

import structlog

from tarazu.domain.addresses import place_of
from tarazu.service.logs import trace_of
from tarazu.service.own_connections import OwnConnections, Peer, are_known, cut
from tarazu.service.packet_filters import shut_out

LOOK_S = 0.05
"""Meanwhile a crowd may become larger by some hundreds, who take the worker a tenth of a millisecond each."""
SERVED_S = 10.0
"""By then what a connection has sent before it was cut off has been served, or passed over."""
LEAVING_S = 5.0
"""So long a client has to read an answer that came before its request had ended."""
LEAVING_LOOK_S = 0.5
"""So often it is seen who of them has gone: another one may come from the same port then."""
CALM_S = 5.0
"""Where a look has found no crowd, the next one may wait so long, unless many more have come."""
CALM_SHARE = 0.25
"""So many are many more: a part of what one address may have."""
FLOOD = 2
"""So many times the bound is a flood: whoever comes from its address between two looks is not served."""
SHUT_S = 0.9
"""So long no connection is made from the address of a crowd. A client's system tries again by itself after a second."""
ROOM_SHARE = 0.875
"""The part of all places that untrusted addresses may have together: the rest is for proxies, and for this machine."""
TOLD_EVERY_S = 10.0

log = structlog.get_logger()


class Unserved(dict[Peer, float]):
    """The peers whose requests are not served: those that were cut off, and when.

    With them are those that have come since the last look from a host that had many times too many then: they are cut
    off next.
    """

    def __init__(self) -> None:
        self._crowded: frozenset[str] = frozenset()
        self._seen: Container[Peer] = ()

    def __contains__(self, peer: object) -> bool:
        """Tell whether it is one of them. The dictionary is empty where there is none."""
        if super().__contains__(peer):
            return True
        return isinstance(peer, tuple) and peer[0] in self._crowded and peer not in self._seen

    def add(self, peers: Iterable[Peer], now_s: float) -> None:
        """Add those that a look has found too many."""
        self.update(dict.fromkeys(peers, now_s))

    def drop(self, peers: Iterable[Peer]) -> None:
        """Take out those that may stay."""
        for peer in peers:
            del self[peer]

    def shut(self, hosts: Iterable[str], seen: Container[Peer]) -> None:
        """Leave out until the next look whoever comes from one of these hosts only; `seen` were there before."""
        self._crowded, self._seen = frozenset(hosts), seen

    def forget(self, now_s: float) -> None:
        """Take out those whose requests have been passed over by now."""
        for peer in [peer for peer, cut_at_s in self.items() if now_s - cut_at_s > SERVED_S]:
            del self[peer]


class Crowds:
    """The watch over one worker's connections at `port`, of which there are at most `connections`.

    An address may have `of_address` of them; addresses in the networks `trusted` may have any number.
    """

    def __init__(self, port: int, *, connections: int, of_address: int, trusted: Iterable[str]) -> None:
        self._port = port
        self._own = OwnConnections(port) if are_known() else None
        self._room = int(connections * ROOM_SHARE)
        self._of_address = min(of_address, self._room)
        self._trusted = tuple(ip_network(network, strict=False) for network in trusted)
        self.unserved = Unserved()
        self.asking: dict[Peer, object] = {}
        """Those who wait for a completion, with their requests. Whoever joins them looks into `unserved` afterwards."""
        self._leaving: dict[Peer, float] = {}
        """Those who have been told that their connection closes, and by when they must have gone."""
        self._leaving_look_s = 0.0
        self._seen: dict[Peer, int] = {}
        """The connections, each with the look that has seen it first."""
        self._looks = 0
        self._shut: dict[str, float] = {}
        """The addresses of crowds, and until when each is shut out."""
        self._calm_until_s = 0.0
        self._calm_below = 0
        self._untold = 0
        self._told_at_s = float("-inf")

    def __repr__(self) -> str:
        return f"<Crowds at {self._port}, {self._of_address} of an address>"

    def start(self) -> None:
        """Watch, in a thread of its own, for as long as the process lives; where the system shows its open files."""
        if self._own is not None:
            threading.Thread(target=self._watch, name="crowds", daemon=True).start()

    def see_off(self, peer: Peer) -> None:
        """Have a connection cut off that was told to close, if it is still there a moment later.

        Granian closes it when it has read the request to its end, which may never come.
        """
        self._leaving[peer] = time.monotonic() + LEAVING_S

    def look(self) -> int:
        """Cut off what is too many, and tell how many that were."""
        assert self._own is not None
        self._looks += 1
        found = dict(self._own.list())
        self._seen = {peer: self._seen.get(peer, self._looks) for peer in found}
        owner_of = {host: self._owner(host) for host in {host for host, _ in found}}
        of_owner: dict[str, list[Peer]] = {}
        for peer in found:
            if (owner := owner_of[peer[0]]) is not None:
                of_owner.setdefault(owner, []).append(peer)
        bound = fair_bound({owner: len(peers) for owner, peers in of_owner.items()}, self._of_address, self._room)
        newest = {
            owner: chosen
            for owner, peers in of_owner.items()
            if len(peers) > bound and (chosen := self._newest(peers, bound))
        }
        self._shut_out(newest, time.monotonic())
        floods = (peers for owner, peers in newest.items() if len(of_owner[owner]) > FLOOD * bound)
        self.unserved.shut({host for peers in floods for host, _ in peers}, self._seen)
        for owner, peers in newest.items():
            self._tell(owner, len(peers))
            for peer in peers:
                cut(found[peer], peer)
        return sum(map(len, newest.values()))

    def _shut_out(self, crowded: Iterable[str], now_s: float) -> None:
        """Have no connection made from these addresses for a while; those whose time is over are let in again.

        A network of IPv6 is not shut out where a trusted proxy is in it.
        """
        assert self._own is not None
        until_s = {owner: now_s + SHUT_S for owner in crowded if not self._has_trusted(ip_network(owner))}
        shut = {owner: at_s for owner, at_s in {**self._shut, **until_s}.items() if now_s < at_s}
        if shut.keys() == self._shut.keys() or shut_out(self._own.without_peer, shut):
            self._shut = shut

    def _has_trusted(self, network: IPv4Network | IPv6Network) -> bool:
        return any(each.version == network.version and each.overlaps(network) for each in self._trusted)

    def _newest(self, peers: list[Peer], bound: int) -> list[Peer]:
        """Choose who is cut off, and let nobody of them be served; whoever has asked until then stays."""
        others = [peer for peer in peers if peer not in self.asking]
        chosen = sorted(others, key=self._seen.__getitem__)[-(len(peers) - bound) :]
        self.unserved.add(chosen, time.monotonic())
        asking = [peer for peer in chosen if peer in self.asking]
        self.unserved.drop(asking)
        return [peer for peer in chosen if peer not in asking]

    def turn(self, in_use: int, now_s: float) -> None:
        """Look where so many connections are in use that there may be a crowd."""
        self.unserved.forget(now_s)
        self._cut_those_who_stay(now_s)
        if self._shut:
            self._shut_out((), now_s)
        if in_use < self._of_address:
            self.unserved.shut((), ())
        elif now_s >= self._calm_until_s or in_use >= self._calm_below:
            is_calm = not self.look()
            self._calm_until_s = now_s + CALM_S if is_calm else 0.0
            self._calm_below = in_use + int(self._of_address * CALM_SHARE)

    def _cut_those_who_stay(self, now_s: float) -> None:
        if not self._leaving or now_s < self._leaving_look_s:
            return
        self._leaving_look_s = now_s + LEAVING_LOOK_S
        assert self._own is not None
        found = dict(self._own.list())
        for peer, until_s in list(self._leaving.items()):
            if peer not in found or peer in self.asking:  # it has gone, and who asks from there is another
                del self._leaving[peer]
            elif until_s <= now_s:
                del self._leaving[peer]
                cut(found[peer], peer)

    def _watch(self) -> None:
        assert self._own is not None
        while True:
            try:
                self.turn(self._own.in_use(), time.monotonic())
                time.sleep(LOOK_S)
            except Exception as error:  # noqa: BLE001 - the watch goes on
                log.error("connections_not_watched", **trace_of(error))  # noqa: TRY400 - as all errors are told
                time.sleep(TOLD_EVERY_S)

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
    sizes = Counter(counts.values())

    def taken(bound: int) -> int:
        return sum(min(size, bound) * owners for size, owners in sizes.items())

    return max(1, bisect_right(range(1, of_address + 1), room, key=taken))


def _is_in(address: object, network: IPv4Network | IPv6Network) -> bool:
    return address in network
