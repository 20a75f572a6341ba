"""A model server for tests: a real HTTP server on loopback that answers as it is told, badly where that is wanted."""

import asyncio
import json
import socket
import struct
import threading
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Self

from msgspec import Struct

from tests.support.patience import PATIENCE_S

FILLER = b" " * 65_536


class Received(Struct, frozen=True):
    """One request as it came in."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class Exchange(Struct):
    """One request being answered. `gone` ends when the other side closes the connection."""

    received: Received
    writer: asyncio.StreamWriter
    gone: "asyncio.Task[bytes]"

    async def send(self, status: int, body: bytes, content_type: str = "application/json", **headers: str) -> None:
        """Send a whole answer."""
        await self.send_part(status, body, len(body), content_type, **headers)

    async def send_part(
        self, status: int, part: bytes, length: int, content_type: str = "application/json", **headers: str
    ) -> None:
        """Send status line, headers that promise `length` bytes, and a part of them."""
        extra = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        self.writer.write(
            f"HTTP/1.1 {status} X\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\n{extra}\r\n".encode()
            + part
        )
        await self.writer.drain()

    async def send_half(self) -> None:
        """Send the first half of a good answer."""
        body = completion()
        await self.send_part(200, body[: len(body) // 2], len(body))


Behaviour = Callable[[Exchange], Awaitable[None]]


def completion(content: object = "Hello there.", usage: object = None, **members: object) -> bytes:
    """Write a chat completion as an OpenAI-compatible server does."""
    body: dict[str, object] = {
        "id": "x",
        "object": "chat.completion",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "length"}],
        **members,
    }
    if usage is not None:
        body["usage"] = usage
    return json.dumps(body).encode()


def answers(body: bytes, status: int = 200, content_type: str = "application/json", **headers: str) -> Behaviour:
    """Answer with this status and body."""

    async def behave(exchange: Exchange) -> None:
        await exchange.send(status, body, content_type, **headers)

    return behave


def replies(content: object = "Hello there.", usage: object = None) -> Behaviour:
    """Answer with a chat completion."""
    return answers(completion(content, usage))


async def stalls(exchange: Exchange) -> None:
    """Never answer."""
    await exchange.gone


async def stalls_in_body(exchange: Exchange) -> None:
    """Send half of the answer, then nothing more."""
    await exchange.send_half()
    await exchange.gone


async def closes_in_body(exchange: Exchange) -> None:
    """Send half of the answer, then close."""
    await exchange.send_half()
    exchange.writer.close()


async def resets(exchange: Exchange) -> None:
    """Cut the connection before any answer."""
    _reset(exchange.writer)


async def resets_in_body(exchange: Exchange) -> None:
    """Cut the connection in the middle of the answer."""
    await exchange.send_half()
    _reset(exchange.writer)


async def never_ends(exchange: Exchange) -> None:
    """Send an answer without end, as fast as it is read."""
    exchange.writer.write(b"HTTP/1.1 200 X\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n")
    chunk = f"{len(FILLER):x}\r\n".encode() + FILLER + b"\r\n"
    while not exchange.gone.done():
        exchange.writer.write(chunk)
        await exchange.writer.drain()


def _reset(writer: asyncio.StreamWriter) -> None:
    raw = writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


TURNS = 5
"""Of the event loop: more than a connection takes to get its task, or to be closed."""


class ScriptedBackend:
    """The server. `behaviour` decides on each answer; `received` keeps what came in.

    `hold()` keeps requests waiting until `let_go()`, so that a test can have many in flight, or one among others.
    """

    def __init__(self) -> None:
        self.behaviour: Behaviour = replies()
        self.received: list[Received] = []
        self._held_prompt: str | None = None
        self._left = threading.Semaphore(0)
        self._arrived = threading.Semaphore(0)
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="scripted-backend")

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(PATIENCE_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(PATIENCE_S)

    @property
    def url(self) -> str:
        """The address for `url` in tarazu.toml."""
        return f"{self.root}/v1"

    @property
    def root(self) -> str:
        """The address without a path."""
        return f"http://127.0.0.1:{self._port}"

    def hold(self, only: str | None = None) -> None:
        """Keep the requests that come from now on waiting: all, or those whose last message is `only`.

        `wait_for_requests` counts from here on.
        """
        self._held_prompt = only
        self._arrived = threading.Semaphore(0)
        self._loop.call_soon_threadsafe(self._open.clear)

    def let_go(self) -> None:
        """Answer the waiting requests, and those that come."""
        self._loop.call_soon_threadsafe(self._open.set)

    def wait_for_requests(self, number: int) -> None:
        """Wait until this many more requests have come in."""
        for _ in range(number):
            assert self._arrived.acquire(timeout=PATIENCE_S), "the backend was not asked"

    def wait_for_leaving(self) -> None:
        """Wait until one more client has gone away without its answer."""
        assert self._left.acquire(timeout=PATIENCE_S), "the backend call runs on"

    def reset(self) -> None:
        """Forget what has come in, and behave well again."""
        self.behaviour = replies()
        self.received.clear()
        self._left = threading.Semaphore(0)
        self._arrived = threading.Semaphore(0)

    def die(self) -> None:
        """Cut all connections, and let nobody connect any more."""
        asyncio.run_coroutine_threadsafe(self._die(), self._loop).result(PATIENCE_S)

    def come_back(self) -> None:
        """Be there again, on the same port."""
        asyncio.run_coroutine_threadsafe(self._listen(self._port), self._loop).result(PATIENCE_S)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._writers: set[asyncio.StreamWriter] = set()
        self._stop = asyncio.Event()
        self._open = asyncio.Event()
        self._open.set()
        await self._listen(0)
        self._port: int = self._server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        self._server.close()
        await self._turn()  # for whoever has just been let in
        for writer in self._writers:
            writer.transport.abort()
        await self._turn()

    async def _turn(self) -> None:
        """Let the loop do what it has begun."""
        for _ in range(TURNS):
            await asyncio.sleep(0)

    async def _listen(self, port: int) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", port, backlog=1024)

    async def _die(self) -> None:
        self._server.close()
        for writer in self._writers:
            _reset(writer)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while not writer.is_closing():
                received = await _read_request(reader)
                self.received.append(received)
                self._arrived.release()
                await self._answer(Exchange(received, writer, asyncio.create_task(reader.read(1))))
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):  # the last: the server ends
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _answer(self, exchange: Exchange) -> None:
        work = asyncio.create_task(self._behave(exchange))
        await asyncio.wait({exchange.gone, work}, return_when=asyncio.FIRST_COMPLETED)
        has_left = exchange.gone.done() and not exchange.writer.is_closing()
        if has_left:
            exchange.writer.close()
            work.cancel()
        exchange.gone.cancel()
        outcome, _ = await asyncio.gather(work, exchange.gone, return_exceptions=True)
        # Who leaves under an answer is first seen by its failing, which closes the connection on this side too.
        if has_left or isinstance(outcome, ConnectionError):
            self._left.release()

    async def _behave(self, exchange: Exchange) -> None:
        if self._held_prompt is None or self._held_prompt == exchange.received.body["messages"][-1]["content"]:
            await self._open.wait()
        await self.behaviour(exchange)


async def _read_request(reader: asyncio.StreamReader) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    request_line, *lines = head.split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    body = await reader.readexactly(int(headers["content-length"]))
    return Received(request_line.split(" ")[1], headers, json.loads(body))
