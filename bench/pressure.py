"""Put more on a worker than it can carry, and watch what becomes of those who ask.

    python -m bench.pressure

A minute. First twice the requests that it can serve, at a steady rate whatever comes back: how many are served and how
soon, what the others are told, and how long after the load's end it serves as before. Then 2,000 requests that wait for
a backend that takes 10 s: what memory each of them takes, and how another model's caller fares meanwhile. The service
has core 0 for itself; those who ask and the model servers have core 1. At the end the books are audited.
"""

import asyncio
import re
import resource
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

from bench.arguments import parser_of
from bench.asking import PLAN, catalogue, prompt_request
from bench.balance import assert_balanced
from bench.figures import Figures, machine, percentile, table
from bench.loopback import Client, connection, model_server
from bench.peers.process_tree import CORE, OTHER_CORE, memory_bytes, on_cores, starting_on
from tarazu.service.configuration import ServerSettings
from tests.support.backend import completion
from tests.support.service import RunningService

CALLERS = 64
CAPACITY_S = 4
OVERLOAD = 2
OVERLOAD_S = 6
TICK_S = 0.002
CALLERS_MAX = 4_000
"""Connections of the overload: whoever waits for an answer has one, and where all wait nobody comes."""
SOON = 3
"""So many times the time that a lone caller was served in before is as before."""
SLOW_S = 10
WAITING = 2_000
KIB = 1_024
BUSY = re.compile(rb"HTTP/1\.1 503 ")
RETRY_AFTER = re.compile(rb"\r\nretry-after: \d+\r\n", re.IGNORECASE)


class BrokenPromiseError(Exception):
    """The service has done what it must not."""


class Callers(Struct, frozen=True):
    """Callers of one service with one key, each with a connection that it keeps."""

    port: int
    key: str

    def request(self, model: str) -> bytes:
        """Write a request for a model."""
        return prompt_request(self.key, model)


async def closed_loop(callers: Callers, model: str, number: int, seconds: float) -> Figures:
    """Let so many callers ask without pause; all must be served."""
    figures, latencies_s = Figures(), list[float]()
    request = callers.request(model)
    began_s = time.perf_counter()

    async def ask() -> None:
        async with connection(callers.port) as client:
            while (asked_s := time.perf_counter()) < began_s + seconds:
                answer = await client.ask(request)
                if not _is_ok(answer):
                    raise BrokenPromiseError(answer.decode())
                latencies_s.append(time.perf_counter() - asked_s)

    await asyncio.gather(*(ask() for _ in range(number)))
    figures.add(time.perf_counter() - began_s, latencies_s)
    return figures


class Overload(Struct):
    """What became of those who came at a steady rate."""

    per_second: float
    served_s: list[float]
    refused_s: list[float]
    recovery_s: float


async def overload(callers: Callers, per_second: float, alone_s: float) -> Overload:
    """Let requests come at this rate; then ask alone until one is served about as soon as `alone_s`, as before."""
    result = Overload(per_second, [], [], 0.0)
    request = callers.request("fast")
    idle: list[Client] = []
    asking: set[asyncio.Task[None]] = set()

    async with _connections(callers, idle):

        async def ask(client: Client) -> None:
            asked_s = time.perf_counter()
            answer = await client.ask(request)
            took_s = time.perf_counter() - asked_s
            if _is_ok(answer):
                result.served_s.append(took_s)
            elif BUSY.match(answer) and RETRY_AFTER.search(answer):
                result.refused_s.append(took_s)
            else:
                raise BrokenPromiseError(answer.decode())
            idle.append(client)

        began_s = time.perf_counter()
        come = 0
        while (now_s := time.perf_counter()) < began_s + OVERLOAD_S:
            due = int((now_s - began_s) * per_second)
            while come < due and idle:
                task = asyncio.create_task(ask(idle.pop()))
                asking.add(task)
                task.add_done_callback(asking.discard)
                come += 1
            await asyncio.sleep(TICK_S)
        ended_s = time.perf_counter()
        result.per_second = come / (ended_s - began_s)
        while not await _is_served(callers, within_s=SOON * alone_s):
            pass
        result.recovery_s = time.perf_counter() - ended_s
        await asyncio.gather(*asking)
    return result


@asynccontextmanager
async def _connections(callers: Callers, idle: list[Client]) -> AsyncIterator[None]:
    """Connect all callers before the load begins."""
    loop = asyncio.get_running_loop()
    transports = []
    for _ in range(CALLERS_MAX):
        transport, client = await loop.create_connection(Client, "127.0.0.1", callers.port)
        transports.append(transport)
        idle.append(client)
    try:
        yield
    finally:
        for transport in transports:
            transport.close()


async def _is_served(callers: Callers, *, within_s: float) -> bool:
    began_s = time.perf_counter()
    async with connection(callers.port) as client:
        answer = await client.ask(callers.request("fast"))
    return _is_ok(answer) and time.perf_counter() - began_s <= within_s


def _is_ok(answer: bytes) -> bool:
    return answer.startswith(b"HTTP/1.1 200 ")


class Waiting(Struct):
    """What many waiting requests cost."""

    bytes_each: float
    beside: Figures
    """Another model's callers, while they wait."""


async def many_waiting(callers: Callers, pid: int) -> Waiting:
    """Let 2,000 requests wait for a slow backend; all are served in the end."""
    before_bytes = memory_bytes(pid)
    request = callers.request("slow")

    async def ask() -> None:
        async with connection(callers.port) as client:
            answer = await client.ask(request)
            if not _is_ok(answer):
                raise BrokenPromiseError(answer.decode())

    asking = [asyncio.create_task(ask()) for _ in range(WAITING)]
    await asyncio.sleep(SLOW_S / 2)  # all are at the backend by now
    bytes_each = (memory_bytes(pid) - before_bytes) / WAITING
    beside = await closed_loop(callers, "fast", 1, SLOW_S / 4)
    await asyncio.gather(*asking)
    return Waiting(bytes_each, beside)


async def run(folder: Path) -> str:
    """Measure all of it and write the report."""
    async with model_server(completion()) as fast, model_server(completion(), after_s=SLOW_S) as slow:
        sold = catalogue({"fast": fast, "slow": slow})
        with _service(folder / "overload", sold, ServerSettings().max_in_flight) as (service, callers):
            alone = await closed_loop(callers, "fast", 1, CAPACITY_S / 2)
            capacity = await closed_loop(callers, "fast", CALLERS, CAPACITY_S)
            overloaded = await overload(callers, OVERLOAD * capacity.per_second, alone.percentile_ms(50) / 1_000)
        with _service(folder / "waiting", sold, 2 * WAITING) as (service, callers):
            usual = await closed_loop(callers, "fast", 1, SLOW_S / 4)
            waiting = await many_waiting(callers, service.process.pid)
    rate, kib_each = f"{capacity.per_second:,.0f} requests/s", f"{waiting.bytes_each / KIB:.1f} KiB"
    latencies = [_latency("usually", usual), _latency("beside them", waiting.beside)]
    parts = [
        f"It serves {rate} to {CALLERS} callers, and is given {OVERLOAD} times as many:",
        _overload_table(overloaded),
        f"{overloaded.recovery_s:.2f} s after the load's end a lone caller is served as before.",
        f"{WAITING:,} requests wait for a slow backend, and each takes {kib_each}. A lone caller of another model:",
        table(["", "", "p50, ms", "p99, ms"], latencies),
        f"Measured with {machine()}.",
    ]
    return "\n\n".join(parts)


@contextmanager
def _service(folder: Path, sold: str, max_in_flight: int) -> Iterator[tuple[RunningService, Callers]]:
    """Run a service on its core, whose one account may have all places; at the end its books must balance."""
    folder.mkdir()
    server = f"max_in_flight = {max_in_flight}\nmax_in_flight_per_account = {max_in_flight}"
    with starting_on({CORE}, RunningService(folder, "", catalogue=sold, server=server)) as service:
        yield service, Callers(service.port, service.customer(PLAN).secret)
        assert_balanced(service.engine)


def _overload_table(overloaded: Overload) -> str:
    rows = [
        _came("served", overloaded.served_s),
        _came("503 with Retry-After", overloaded.refused_s),
    ]
    return table([f"of {overloaded.per_second:,.0f} a second", "", "a second", "p50, ms", "p99, ms"], rows)


def _came(what: str, latencies_s: Sequence[float]) -> list[str]:
    figures = [percentile(latencies_s, percent) * 1_000 for percent in (50, 99)] if latencies_s else []
    return [what, "", f"{len(latencies_s) / OVERLOAD_S:,.0f}", *(f"{figure:,.1f}" for figure in figures)]


def _latency(what: str, figures: Figures) -> list[str]:
    return [what, "", *(f"{figures.percentile_ms(percent):,.2f}" for percent in (50, 99))]


def main() -> None:
    """Measure; print the report, and write it where it is asked for."""
    parser = parser_of("bench.pressure", __doc__)
    parser.add_argument("--output", type=Path, help="a file to write the report to")
    arguments = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with TemporaryDirectory(prefix="tarazu-bench-") as name, on_cores({OTHER_CORE}):
        report = asyncio.run(run(Path(name)))
    print(report)
    if arguments.output:
        arguments.output.write_text(report + "\n", "utf-8")


if __name__ == "__main__":
    main()
