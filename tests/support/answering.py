"""A server that sends bytes as they are told: answers that no HTTP server would give."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from msgspec import Struct, field


class AnsweringServer(Struct):
    """What it was asked: the `heads` of all requests, and how many `connections` were made for them."""

    port: int
    heads: list[bytes] = field(default_factory=list)
    connections: int = 0

    @property
    def url(self) -> str:
        """An address on it."""
        return f"http://127.0.0.1:{self.port}/v1"


@asynccontextmanager
async def answering(*parts: bytes, closes: bool = False) -> AsyncIterator[AnsweringServer]:
    """Answer each request with these parts, each in a write of its own; then close, or wait for the next."""
    told: AnsweringServer

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        told.connections += 1
        try:
            while head := await _head(reader):
                told.heads.append(head)
                await _send(writer, parts)
                if closes:
                    break
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    told = AnsweringServer(server.sockets[0].getsockname()[1])
    try:
        yield told
    finally:
        server.close()


async def _head(reader: asyncio.StreamReader) -> bytes:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        for line in head.split(b"\r\n"):
            if line.startswith(b"content-length: "):
                await reader.readexactly(int(line.removeprefix(b"content-length: ")))
    except asyncio.IncompleteReadError:
        return b""
    return head


async def _send(writer: asyncio.StreamWriter, parts: Sequence[bytes]) -> None:
    for part in parts:
        writer.write(part)
        await writer.drain()
