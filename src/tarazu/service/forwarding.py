"""Tell where a request comes from and how it was asked for: by its connection, or by what a trusted proxy says."""

import time
from collections.abc import Callable, Iterable, Mapping
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any
from urllib.parse import urlsplit

import structlog
from msgspec import Struct

WARNING_EVERY_S = 3_600.0
"""Forwarding headers of a peer that is not trusted are told once in so long by each process, not at every request."""
HTTPS = "https"
HTTP = "http"

_FOR, _PROTO, _HOST, _STANDARD = b"x-forwarded-for", b"x-forwarded-proto", b"x-forwarded-host", b"forwarded"
FORWARDING = frozenset({_FOR, _PROTO, _HOST, _STANDARD})
"""The headers that a proxy tells of a request's origin by. `Forwarded` is never believed: most proxies pass it on."""

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

log = structlog.get_logger()


class Origin(Struct, frozen=True):
    """Where one request comes from. `address` is the caller's, `scheme` and `host` are those it has asked with.

    `hosts` are all that were named, lower-case, with their ports: Host, and what a trusted proxy has put in its place.
    """

    address: str
    scheme: str
    hosts: tuple[str, ...]

    @property
    def host(self) -> str:
        """The host that the caller has named; empty where there was none."""
        return self.hosts[-1] if self.hosts else ""

    @property
    def is_https(self) -> bool:
        """Whether the caller has asked over HTTPS."""
        return self.scheme == HTTPS

    @property
    def is_secure(self) -> bool:
        """Whether cookies are for HTTPS alone: always, but on a machine that is asked by itself."""
        return self.is_https or not is_loopback(host_name(self.host))


class Forwarding:
    """Whom a process believes about the origin of requests.

    `trusted` are the networks of the proxies that speak to it, `depth` tells how many stand one behind the other in
    front of it: so many addresses at the end of X-Forwarded-For were written by them, and the first of these is the
    caller's. `base_url` is the address that callers use; where they ask for its host, they ask with its scheme.
    """

    def __init__(
        self,
        trusted: Iterable[str],
        depth: int,
        base_url: str,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._trusted = tuple(ip_network(network, strict=False) for network in trusted)
        self._depth = depth
        base = urlsplit(base_url)
        self._base_scheme, self._base_host = base.scheme, base.netloc.lower()
        self._monotonic = monotonic
        self._warned_at_s: float | None = None

    def __repr__(self) -> str:
        return f"<Forwarding by {self._depth} in {', '.join(map(str, self._trusted)) or 'no network'}>"

    def origin(self, scope: Mapping[str, Any]) -> Origin:
        """Tell the origin of a request by its ASGI scope."""
        peer = scope["client"][0] if scope.get("client") else ""
        named = [(name, value) for name, value in scope["headers"] if name == b"host" or name in FORWARDING]
        told = [(name, value) for name, value in named if name in FORWARDING]
        hosts = [value for name, value in named if name == b"host"]
        if told and not self._is_trusted(peer):
            self._warn(peer, told)
            told = []
        hosts += self._said(told, _HOST)
        host = _text(hosts[-1]) if hosts else ""
        return Origin(
            address=self._address(peer, told),
            scheme=self._scheme(told, host, scope.get("scheme", HTTP)),
            hosts=tuple(map(_text, hosts)),
        )

    def _address(self, peer: str, told: list[tuple[bytes, bytes]]) -> str:
        found = self._said(told, _FOR)
        text = _text(found[0]) if found else ""
        address = _address(text) or _address(host_name(text))  # some proxies write the port too
        return peer if address is None else str(address)

    def _scheme(self, told: list[tuple[bytes, bytes]], host: str, of_connection: str) -> str:
        found = self._said(told, _PROTO)
        if found:
            return HTTPS if _text(found[0]) == HTTPS else HTTP
        return self._base_scheme if host == self._base_host else of_connection

    def _said(self, told: list[tuple[bytes, bytes]], name: bytes) -> list[bytes]:
        """Tell what the first of the trusted proxies has said: they have written as many as they are, at the end."""
        value = b",".join(value for given, value in told if given == name)
        if not value or self._depth == 0:
            return []
        said = value.rsplit(b",", self._depth)
        return [said[-min(self._depth, len(said))]]

    def _is_trusted(self, peer: str) -> bool:
        address = _address(peer)
        return address is not None and any(address in network for network in self._trusted)

    def _warn(self, peer: str, told: list[tuple[bytes, bytes]]) -> None:
        now_s = self._monotonic()
        if self._warned_at_s is not None and now_s - self._warned_at_s < WARNING_EVERY_S:
            return
        self._warned_at_s = now_s
        log.warning(
            "forwarding_ignored",
            address=peer,
            headers=sorted({name.decode() for name, _ in told}),
            reason="the peer is not in trusted_proxies of [server]",
        )


def is_loopback(host: str) -> bool:
    """Tell whether a host is this machine, as it calls itself."""
    address = _address(host)
    if address is not None:
        return address.is_loopback
    return host == "localhost" or host.endswith(".localhost")


def host_name(host: str) -> str:
    """Take the port, and the brackets of an IPv6 address, from a Host."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _address(text: str) -> Address | None:
    """Read an address; one of IPv4 that is written as IPv6 is that of IPv4."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _text(value: bytes) -> str:
    return value.decode("latin-1").strip().lower()
