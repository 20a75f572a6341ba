"""Let strangers send and hold the worst that they can, and watch how an ordinary caller fares beside them.

    python -m bench.strangers

Two minutes. First heads of 500 KB, of each kind that has ever been dear to read, so many a second. Then 8,200
connections from one address, each with 30 requests whose answers nobody reads: while they come, while they are held,
and when they have gone. The service has core 0 for itself; all others have core 1. At the end the books are audited.
"""

import asyncio
import os
import resource
import selectors
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.arguments import parser_of
from bench.asking import PLAN, catalogue
from bench.balance import assert_balanced
from bench.figures import MIB, Figures, machine, table
from bench.loopback import model_server
from bench.peers.process_tree import CORE, OTHER_CORE, memory_bytes, on_cores, starting_on
from bench.pressure import Callers, closed_loop
from tests.support.backend import completion
from tests.support.service import RunningService

HEAD_BYTES = 500_000
HEADS_A_SECOND = 20
SECONDS = 5
CONNECTIONS = 8_200
REQUESTS_EACH = 30
PATH = b"/docs"
RECEIVE_BUFFER = 2_048
COMING_S = 10.0
STRANGER = "127.0.0.2"
"""Another address than the caller's: each may have so many connections."""


def heads() -> dict[str, bytes]:
    """Write a head of each kind, by what is large in it."""
    plain = b"GET /api/v1/usage HTTP/1.1\r\nHost: x\r\n"
    chat = b"POST /api/v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n"
    whole = {
        "Cookie": b'GET /panel/sign-in HTTP/1.1\r\nHost: x\r\nCookie: a="' + _much(b"\\") + b'"\r\n',
        "Content-Type": chat + b'Content-Type: application/json; a="' + _much(b";") + b"\r\n",
        "Authorization": plain + b"Authorization: Bearer" + _much(b" x") + b"\r\n",
        "Accept-Language": b"GET /panel/sign-in HTTP/1.1\r\nHost: x\r\nAccept-Language: " + _much(b"de,") + b"\r\n",
        "X-Forwarded-For": b"GET /panel/sign-in HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: "
        + _much(b"1.1.1.1,")
        + b"\r\n",
        "Idempotency-Key": chat + b"Idempotency-Key: " + _much(b"x") + b"\r\n",
        "many headers": plain + _much(b"a: b\r\n"),
        "query": b"GET /panel/history?" + _much(b"a&") + b" HTTP/1.1\r\nHost: x\r\n",
        "path": b"GET /api/v1/models/" + _much(b"%2F") + b" HTTP/1.1\r\nHost: x\r\n",
        "no end": plain + b"A: " + _much(b"x"),
    }
    return {name: head + (b"" if name == "no end" else b"\r\n") for name, head in whole.items()}


def _much(content: bytes) -> bytes:
    return content * (HEAD_BYTES // len(content))


async def send_heads(port: int, head: bytes, seconds: float) -> None:
    """Send so many of them a second, each over a connection of its own, and read what comes back."""

    async def send() -> None:
        with suppress(OSError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(STRANGER, 0))
            try:
                writer.write(head)
                await reader.read()
            finally:
                writer.close()

    async with asyncio.TaskGroup() as sending:
        for _ in range(int(seconds * HEADS_A_SECOND)):
            sending.create_task(send())
            await asyncio.sleep(1 / HEADS_A_SECOND)


@contextmanager
def unread(port: int) -> Iterator[Callable[[], None]]:
    """Give what opens the connections, in any thread; they are closed at the end.

    Nobody waits for an answer: what is not heard the system sends again. It ends when all have sent their requests, or
    were cut off, and in any case after COMING_S.
    """
    connections: list[socket.socket] = []
    coming = selectors.DefaultSelector()

    def open_all() -> None:
        until_s = time.monotonic() + COMING_S
        for _ in range(CONNECTIONS):
            connection = socket.socket()
            connections.append(connection)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
            connection.bind((STRANGER, 0))
            connection.settimeout(0)
            connection.connect_ex(("127.0.0.1", port))
            coming.register(connection, selectors.EVENT_WRITE)
            ask(coming.select(0))
        while coming.get_map() and time.monotonic() < until_s:
            ask(coming.select(0.1))

    def ask(connected: list[tuple[selectors.SelectorKey, int]]) -> None:
        for key, _ in connected:
            coming.unregister(key.fileobj)
            with suppress(OSError):  # it was cut off already
                os.write(key.fd, b"GET " + PATH + b" HTTP/1.1\r\nHost: x\r\n\r\n" * REQUESTS_EACH)

    with coming:
        try:
            yield open_all
        finally:
            for connection in connections:
                connection.close()


async def run(folder: Path) -> str:
    """Measure both and write the report."""
    async with model_server(completion()) as backend:
        sold = catalogue({"fast": backend})
        with ExitStack() as stack:
            untrusting = RunningService(folder, "", catalogue=sold, server="trusted_proxies = []")
            service = stack.enter_context(starting_on({CORE}, untrusting))
            callers = Callers(service.port, service.customer(PLAN).secret)
            beside_heads = await _beside_heads(callers)
            beside_unread, held_bytes = await _beside_unread(callers, service)
            assert_balanced(service.engine)
    parts = [
        f"A lone caller, alone and beside {HEADS_A_SECOND} heads of {HEAD_BYTES:,} bytes a second:",
        beside_heads,
        f"And {CONNECTIONS:,} connections of one address that never read, {REQUESTS_EACH} requests each:",
        beside_unread,
        f"The service took {held_bytes / MIB:,.0f} MiB meanwhile. Measured with {machine()}.",
    ]
    return "\n\n".join(parts)


async def _beside_heads(callers: Callers) -> str:
    rows = []
    for name, head in heads().items():
        usual = await closed_loop(callers, "fast", 1, SECONDS)
        beside, _ = await asyncio.gather(
            closed_loop(callers, "fast", 1, SECONDS), send_heads(callers.port, head, SECONDS)
        )
        rows.append([name, "", *_figures(usual), *_figures(beside), _ratio(beside, usual)])
    return table(["", "", "p50 alone, ms", "p99", "max", "p50 beside, ms", "p99", "max", "p99, times"], rows)


async def _beside_unread(callers: Callers, service: RunningService) -> tuple[str, float]:
    rows = []

    async def measure(when: str, seconds: float = SECONDS) -> None:
        figures = await closed_loop(callers, "fast", 1, seconds)
        rows.append([when, "", *_figures(figures)])

    await measure("before")
    with unread(callers.port) as open_all:
        coming = asyncio.create_task(asyncio.to_thread(open_all))
        while not coming.done():
            await measure("while they come", SECONDS / 5)
        held_bytes = memory_bytes(service.process.pid)
        await measure("while they are held")
    await measure("after")
    return table(["", "", "p50, ms", "p99", "max"], rows), held_bytes


def _figures(figures: Figures) -> list[str]:
    return [
        *(f"{figures.percentile_ms(percent):,.2f}" for percent in (50, 99)),
        f"{max(figures.latencies_s) * 1_000:,.1f}",
    ]


def _ratio(beside: Figures, usual: Figures) -> str:
    return f"{beside.percentile_ms(99) / usual.percentile_ms(99):.2f}"


def main() -> None:
    """Measure; print the report."""
    parser_of("bench.strangers", __doc__).parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with TemporaryDirectory(prefix="tarazu-bench-") as name, on_cores({OTHER_CORE}):
        print(asyncio.run(run(Path(name))))


if __name__ == "__main__":
    main()
