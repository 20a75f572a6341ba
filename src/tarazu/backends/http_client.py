"""The HTTP client for model servers: one request, bounded in time and size, with every failure named.

It works in the event loop that asks, on connections that it keeps: no other thread takes part in a call.
"""

import asyncio
import os
import re
import ssl
from collections.abc import Mapping
from functools import cached_property
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from msgspec import Struct

from tarazu.backends.http_connection import HttpConnection, HttpError, HttpReply, NoOpenFileError, TooLargeError
from tarazu.backends.http_route import CONNECT_TIMEOUT_S, IDLE_CONNECTIONS_MAX, Route, bracketed
from tarazu.backends.port import BackendError, Fault
from tarazu.backends.proxies import Proxies, UnusableProxyError

NO_ANSWER = "no whole answer in time"
REPLY_BYTES_MAX = 4 * 1024 * 1024
TARGETS_MAX = 1024
"""Addresses that are remembered: more than a catalogue has."""
DEFAULT_PORTS = {"http": 80, "https": 443}
OWN_HEADERS = "user-agent: tarazu\r\naccept: application/json\r\naccept-encoding: identity\r\n"
_VISIBLE = re.compile(r"[!-~]+", re.ASCII)
_NAME = re.compile(r"[a-z0-9._~-]+", re.ASCII)


class AddressError(HttpError):
    """What was to be asked is no address."""


class _Target(Struct, frozen=True):
    """How an address is asked: where, the rest of the request line, and the headers that are always the same."""

    route: Route
    uri: str
    head: str


class HttpClient:
    """Asks model servers. Redirects are not followed, so no key goes to another host; TLS is always verified.

    A call that is cancelled is cut off at the server at once. Each has a connection to itself: it is HTTP/1.1, also
    where a server offers HTTP/2, in which all share one, and those beyond the server's bound of streams wait unseen.
    A client is used in one event loop. It has at most `connections_max` open, the idle ones included, where no more are
    used at once.
    """

    def __init__(self, environ: Mapping[str, str] = os.environ, *, connections_max: int = IDLE_CONNECTIONS_MAX) -> None:
        """Prepare; the proxies are those that the environment names now."""
        self._connections_max = connections_max
        self._in_use = 0
        self._proxies = Proxies(environ)
        self._trusting: dict[str, tuple[bytes, ssl.SSLContext]] = {}
        self._targets: dict[tuple[str, bool, str | None], _Target] = {}
        self._routes: dict[tuple[str, str, int, bool, str | None], Route] = {}
        self._is_closed = False

    def close(self) -> None:
        """End all calls."""
        self._is_closed = True
        for route in self._routes.values():
            route.close()

    def trust(self, ca_file: str) -> None:
        """Make calls possible in which a server is trusted when an authority in this PEM file says so, and no other.

        A file that has changed since the last time is in force from the next call on.

        Raises:
            OSError: the file cannot be read, or holds no certificates.
        """
        authorities = Path(ca_file).read_bytes()
        if ca_file not in self._trusting or self._trusting[ca_file][0] != authorities:
            self._trusting[ca_file] = authorities, _tls(authorities)
            self._forget()

    async def post_json(
        self,
        url: str,
        body: bytes,
        *,
        headers: dict[str, str],
        timeout_s: float,
        direct: bool = False,
        ca_file: str | None = None,
    ) -> HttpReply:
        """Send a JSON body and read the whole answer.

        `direct` passes by any proxy of the environment. `ca_file` has been given to `trust`.

        Raises:
            BackendError: unreachable, out of time, an answer of more than REPLY_BYTES_MAX, or no file left to open.
        """
        if timeout_s <= 0:  # a pause before this try took longer than it was to
            raise BackendError(Fault.TIMEOUT, "no time was left")
        try:
            return await self.send(
                "POST",
                url,
                body,
                headers=headers,
                timeout_s=timeout_s,
                bytes_max=REPLY_BYTES_MAX,
                direct=direct,
                ca_file=ca_file,
            )
        except TimeoutError:
            raise BackendError(Fault.TIMEOUT, NO_ANSWER) from None
        except TooLargeError:
            raise BackendError(Fault.INVALID_REPLY, f"more than {REPLY_BYTES_MAX} bytes") from None
        except NoOpenFileError:
            raise BackendError(Fault.NO_OPEN_FILE) from None
        except HttpError as error:
            raise BackendError(Fault.UNREACHABLE, str(error)) from None

    async def send(
        self,
        method: str,
        url: str,
        body: bytes | None,
        *,
        headers: dict[str, str],
        timeout_s: float,
        bytes_max: int,
        direct: bool = False,
        ca_file: str | None = None,
    ) -> HttpReply:
        """Send a request, with a JSON body or none, and read the whole answer.

        Raises:
            HttpError: there is none; an AddressError, when `url` is no address, a TooLargeError, when it is larger.
            TimeoutError: it has not come in time.
        """
        target = self._targets.get((url, direct, ca_file)) or self._find(url, direct=direct, ca_file=ca_file)
        request = _written(target, method, headers, body)
        self._in_use += 1
        try:
            connection = target.route.take()
            if connection is None:
                loop = asyncio.get_running_loop()
                end_s = loop.time() + timeout_s
                connection = await self._connect(target.route, min(timeout_s, CONNECT_TIMEOUT_S))
                timeout_s = end_s - loop.time()
            reply = await connection.exchange(request, bytes_max=bytes_max, timeout_s=timeout_s)
            if connection.is_free:
                target.route.keep(connection)
        finally:
            self._in_use -= 1
        return reply

    async def _connect(self, route: Route, timeout_s: float) -> HttpConnection:
        """Make one more connection; those that are idle on all routes make room for it."""
        self._make_room(self._connections_max - self._in_use)
        try:
            return await route.connect(timeout_s)
        except NoOpenFileError:
            if not self._make_room(0):
                raise
            return await route.connect(timeout_s)

    def _make_room(self, idle_max: int) -> int:
        """Close connections until so many are idle, of the route that has the most; tell how many were closed."""
        closed = 0
        idle = sum(route.idle for route in self._routes.values())
        while idle > max(0, idle_max):
            max(self._routes.values(), key=lambda route: route.idle).close_one()
            idle, closed = idle - 1, closed + 1
        return closed

    def _find(self, url: str, *, direct: bool, ca_file: str | None) -> _Target:
        if self._is_closed:
            raise HttpError("the client is closed")
        if len(self._targets) >= TARGETS_MAX:
            self._forget()
        parts, host, port = _parts(url)
        try:
            proxy = None if direct else self._proxies.choose(parts.scheme, host)
        except UnusableProxyError:
            raise HttpError("unusable proxy in the environment") from None
        by = (parts.scheme, host, port, direct, ca_file)
        if by not in self._routes:
            tls = None if parts.scheme == "http" else self._tls if ca_file is None else self._trusting[ca_file][1]
            self._routes[by] = Route(host, port, tls=tls, proxy=proxy)
        authority = bracketed(host)
        if port != DEFAULT_PORTS[parts.scheme]:
            authority += f":{port}"
        uri = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        head = f"host: {authority}\r\n{OWN_HEADERS}"
        if proxy is not None and parts.scheme == "http":
            uri, head = f"http://{authority}{uri}", head + proxy.authorization
        target = self._targets[url, direct, ca_file] = _Target(self._routes[by], uri, head)
        return target

    def _forget(self) -> None:
        """Find the ways anew."""
        for route in self._routes.values():
            route.retire()
        self._routes.clear()
        self._targets.clear()

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return _tls()


def _written(target: _Target, method: str, headers: dict[str, str], body: bytes | None) -> bytes:
    lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
    if lines.count("\n") != len(headers) or lines.count("\r") != len(headers) or "\0" in lines:
        raise HttpError("malformed header")
    content = "" if body is None else f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
    return f"{method} {target.uri} HTTP/1.1\r\n{target.head}{content}{lines}\r\n".encode() + (body or b"")


def _parts(url: str) -> tuple[SplitResult, str, int]:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        port = parts.port or DEFAULT_PORTS[parts.scheme]
        if ":" in host:
            ip_address(host)
    except (ValueError, KeyError):
        raise AddressError("no address") from None
    if "@" in parts.netloc or not _VISIBLE.fullmatch(url) or not (":" in host or _NAME.fullmatch(host)):
        raise AddressError("no address")
    return parts, host, port


def _tls(authorities: bytes | None = None) -> ssl.SSLContext:
    pem = None if authorities is None else authorities.decode("ascii", "ignore")  # beside certificates: remarks
    context = ssl.create_default_context(cadata=pem)
    # Python 3.13 refuses authorities of one's own that lack what few tools write, and others before it do not.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.set_alpn_protocols(["http/1.1"])
    return context
