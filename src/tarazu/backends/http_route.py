"""The way to one server: straight or through a proxy, in the clear or by TLS, and the connections kept open on it."""

import asyncio
import errno
import os
import re
import socket
import ssl
from collections import deque
from typing import cast
from weakref import WeakSet

from tarazu.backends.http_connection import HEAD_BYTES_MAX, HttpConnection, HttpError, NoOpenFileError
from tarazu.backends.proxies import Proxy

CONNECT_TIMEOUT_S = 10
IDLE_TIMEOUT_S = 20
"""Shorter than the keep-alive of common servers, so that a kept connection is seldom closed under a request."""
IDLE_CONNECTIONS_MAX = 512
"""Kept open to one server."""
_NO_FILES = (errno.EMFILE, errno.ENFILE)
_LET_THROUGH = re.compile(rb"HTTP/1\.[01] 2[0-9]{2}[ \r]")
_HEAD_END = b"\r\n\r\n"


class Route:
    """Makes connections to a server, keeps those that are free, and closes them when they have been idle for long."""

    def __init__(self, host: str, port: int, *, tls: ssl.SSLContext | None, proxy: Proxy | None) -> None:
        self._host = host
        self._port = port
        self._tls = tls
        self._proxy = proxy
        self._all: WeakSet[HttpConnection] = WeakSet()
        self._idle: deque[HttpConnection] = deque()
        """The longest idle first."""
        self._sweep: asyncio.TimerHandle | None = None
        self._is_closed = False

    @property
    def idle(self) -> int:
        """How many connections are kept."""
        return len(self._idle)

    def close_one(self) -> None:
        """Close the one that has been idle for longest."""
        self._idle.popleft().cut()

    def take(self) -> HttpConnection | None:
        """Take the connection that was used last, if one is free."""
        while self._idle:
            connection = self._idle.pop()
            if connection.is_free:
                return connection
        return None

    def keep(self, connection: HttpConnection) -> None:
        """Keep a free connection for the next exchange."""
        if len(self._idle) >= IDLE_CONNECTIONS_MAX or self._is_closed:
            connection.cut()
            return
        loop = asyncio.get_running_loop()
        connection.free_since_s = loop.time()
        self._idle.append(connection)
        if self._sweep is None:
            self._sweep = loop.call_later(IDLE_TIMEOUT_S, self._close_idle, loop)

    def close(self) -> None:
        """End all connections, and let none be made any more."""
        self._is_closed = True
        for connection in list(self._all):
            connection.cut()
        self._idle.clear()
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None

    def retire(self) -> None:
        """Keep no connection any more; exchanges on their way end as they began."""
        for connection in self._idle:
            connection.cut()
        self._idle.clear()
        self._is_closed = True

    async def connect(self, timeout_s: float) -> HttpConnection:
        """Make a connection.

        Raises:
            HttpError: there is none to be had; a NoOpenFileError, where that is this process's own doing.
            TimeoutError: nor is it known in time whether there is.
        """
        try:
            async with asyncio.timeout(timeout_s):
                connection = await self._connect()
        except TimeoutError:
            raise
        except (OSError, UnicodeError) as error:
            if _no_file_is_left(error):
                raise NoOpenFileError("no open file is left") from None
            raise HttpError(_reason(error)) from None
        return connection

    async def _connect(self) -> HttpConnection:
        loop = asyncio.get_running_loop()
        if self._proxy is not None and self._tls is not None:
            return await self._connect_through(self._proxy, self._tls)
        host, port = (self._host, self._port) if self._proxy is None else (self._proxy.host, self._proxy.port)
        server_name = None if self._tls is None else self._host
        _, connection = await loop.create_connection(
            self._new_connection, host, port, ssl=self._tls, server_hostname=server_name
        )
        return connection

    async def _connect_through(self, proxy: Proxy, tls: ssl.SSLContext) -> HttpConnection:
        loop = asyncio.get_running_loop()
        transport, tunnel = await loop.create_connection(_Tunnel, proxy.host, proxy.port)
        try:
            authority = f"{bracketed(self._host)}:{self._port}"
            head = (
                f"CONNECT {authority} HTTP/1.1\r\nhost: {authority}\r\nuser-agent: tarazu\r\n{proxy.authorization}\r\n"
            )
            transport.write(head.encode())
            await tunnel.opened
            connection = self._new_connection()
            secured = await loop.start_tls(transport, connection, tls, server_hostname=self._host)
        except BaseException:
            transport.abort()
            raise
        connection.connection_made(cast("asyncio.Transport", secured))
        return connection

    def _new_connection(self) -> HttpConnection:
        connection = HttpConnection()
        self._all.add(connection)
        return connection

    def _close_idle(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close those whose time is over, and look again when the next one's is."""
        self._sweep = None
        now_s = loop.time()
        while self._idle and (not self._idle[0].is_free or self._idle[0].free_since_s + IDLE_TIMEOUT_S <= now_s):
            self._idle.popleft().cut()
        if self._idle:
            self._sweep = loop.call_at(self._idle[0].free_since_s + IDLE_TIMEOUT_S, self._close_idle, loop)


def bracketed(host: str) -> str:
    """Write a host as it stands before a port: an IPv6 address has colons of its own."""
    return f"[{host}]" if ":" in host else host


class _Tunnel(asyncio.Protocol):
    """Waits for a proxy to let a connection through: `opened`."""

    def __init__(self) -> None:
        self.opened = asyncio.get_running_loop().create_future()
        self._head = b""

    def data_received(self, data: bytes) -> None:
        self._head += data
        if self.opened.done():
            return
        if self._head.endswith(_HEAD_END) and _LET_THROUGH.match(self._head):
            self.opened.set_result(None)
        elif _HEAD_END in self._head or len(self._head) > HEAD_BYTES_MAX:
            self.opened.set_exception(HttpError("refused by the proxy"))

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - whatever it is
        if not self.opened.done():
            self.opened.set_exception(HttpError("connection to the proxy closed"))


def _no_file_is_left(error: OSError | UnicodeError) -> bool:
    """Tell whether the process, or the machine, has run out of open files.

    Where a name was looked up, or several addresses tried, the error has lost its number: then one is tried to open.
    """
    if isinstance(error, OSError) and error.errno in _NO_FILES:
        return True
    if isinstance(error, socket.gaierror) or not getattr(error, "errno", None):
        try:
            os.close(os.open(os.devnull, os.O_RDONLY))
        except OSError as of_opening:
            return of_opening.errno in _NO_FILES
    return False


def _reason(error: OSError | UnicodeError) -> str:
    """Say why there is no connection. The error's own words may hold the address."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return "certificate not trusted"
    if isinstance(error, ssl.SSLError):
        return "no TLS"
    if isinstance(error, UnicodeError | socket.gaierror):
        return "name not resolved"
    return os.strerror(error.errno) if error.errno else type(error).__name__
