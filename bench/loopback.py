"""Both ends of a service that is measured: clients that keep their connection, and a model server with one reply.

They do no more than HTTP/1.1 with Content-Length needs, so that what is measured is the service between them.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_HEAD_END = b"\r\n\r\n"


class _Peer(asyncio.Protocol):
    """One end of a connection, which takes messages whole."""

    def __init__(self) -> None:
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport, to write to."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Take in what has come, and every message that is whole with it."""
        self._buffer += data
        while (head_end := self._buffer.find(_HEAD_END)) >= 0:
            length = _LENGTH.search(self._buffer, 0, head_end)
            end = head_end + len(_HEAD_END) + (int(length[1]) if length else 0)
            if len(self._buffer) < end:
                return
            message, self._buffer = self._buffer[:end], self._buffer[end:]
            self.take(message)

    def take(self, message: bytes) -> None:
        """Do with a message what this end does."""
        raise NotImplementedError


class Client(_Peer):
    """A client that asks one thing after the other."""

    def __init__(self) -> None:
        super().__init__()
        self._answer: asyncio.Future[bytes] | None = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Let whoever waits for an answer know."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(exc or ConnectionResetError("The service has closed the connection."))

    async def ask(self, request: bytes) -> bytes:
        """Send a request as it is and answer with the whole response."""
        self._answer = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return await self._answer

    def take(self, message: bytes) -> None:
        """Hand the response over."""
        assert self._answer is not None
        self._answer.set_result(message)


class _ModelServer(_Peer):
    def __init__(self, response: bytes, after_s: float) -> None:
        super().__init__()
        self._response = response
        self._after_s = after_s

    def take(self, message: bytes) -> None:  # noqa: ARG002 - whatever was asked
        if self._after_s:
            asyncio.get_running_loop().call_later(self._after_s, self.transport.write, self._response)
        else:
            self.transport.write(self._response)


@asynccontextmanager
async def connection(port: int) -> AsyncIterator[Client]:
    """Connect to a port of this machine."""
    transport, client = await asyncio.get_running_loop().create_connection(Client, "127.0.0.1", port)
    try:
        yield client
    finally:
        transport.close()


@asynccontextmanager
async def model_server(reply: bytes, *, after_s: float = 0) -> AsyncIterator[str]:
    """Answer every request with this JSON, after this time; the block is given the address for `url` in tarazu.toml."""
    response = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(reply)}\r\n\r\n".encode()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _ModelServer(response + reply, after_s), "127.0.0.1", 0, backlog=1_024)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
