"""The service in four worker processes on the same books, asked over connections each to a process that is known."""

import http.client
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg

from tests.support.patience import PATIENCE_S
from tests.support.processes import clients, workers
from tests.support.service import CATALOGUE, Answer, Asking, RunningService, send
from tests.support.set_clock import SetClock, service_by
from tests.support.stores import SqliteStore, Store

PROCESSES = 4


class Line(Asking):
    """A connection that is kept open, for one request at a time. All of them are answered by the same process."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
        self._connection.connect()
        self._connection.auto_open = 0  # closed, it stays closed: a new one may be another process's
        self.socket: socket.socket = self._connection.sock
        self.get("/")  # who answers has accepted it

    def request(
        self,
        method: str,
        path: str,
        body: bytes | str | None = None,
        headers: Mapping[str, str] | Sequence[tuple[str, str]] = (),
    ) -> Answer:
        """Send one request as it is, over this connection."""
        return send(self._connection, method, path, body, headers)

    def close(self) -> None:
        """Close it."""
        self._connection.close()


class FourProcesses:
    """One `serve` of four workers on SQLite, two of two workers each on PostgreSQL. `first` speaks for the books."""

    def __init__(self, services: Sequence[RunningService]) -> None:
        self.services = services
        self.first = services[0]

    @contextmanager
    def lines(self, of_each: int) -> Iterator[list[Line]]:
        """Open as many lines to each process. They take turns: any four that follow each other are one to each."""
        with ExitStack() as stack:
            by_process = [lines for service in self.services for lines in _lines(service, of_each, stack)]
            assert len(by_process) == PROCESSES
            yield [line for turn in zip(*by_process, strict=True) for line in turn]


def _lines(service: RunningService, of_each: int, stack: ExitStack) -> list[list[Line]]:
    """Open lines to the workers of a service. Chance deals them out, so those that one has too many of are closed."""
    found: dict[int, list[Line]] = {pid: [] for pid in workers(service)}
    until_s = time.monotonic() + PATIENCE_S
    while any(len(lines) < of_each for lines in found.values()):
        assert time.monotonic() < until_s, "a process takes no connections"
        opened = [Line(service.port) for _ in range(of_each * len(found))]
        for pid, lines in found.items():
            ports = clients(pid, service.port)
            lines += [line for line in opened if line.socket.getsockname()[1] in ports]
    for lines in found.values():
        for line in lines[of_each:]:
            line.close()
        for line in lines[:of_each]:
            stack.callback(line.close)
    return [lines[:of_each] for lines in found.values()]


@contextmanager
def four_processes(
    clock: SetClock, store: Store, folder: Path, backend_url: str, *, catalogue: str = CATALOGUE, server: str = ""
) -> Iterator[FourProcesses]:
    """Run them by the clock; at the end the books must balance, the logs be clean, and nobody have met a deadlock."""
    url = store.new_books(folder)
    numbers_of_workers = (PROCESSES,) if isinstance(store, SqliteStore) else (PROCESSES // 2,) * 2
    with ExitStack() as stack:
        services = []
        for place, number in enumerate(numbers_of_workers):
            own_folder = folder / f"service {place}"
            own_folder.mkdir()
            running = service_by(
                clock,
                own_folder,
                backend_url,
                catalogue=catalogue,
                server=f"workers = {number}\n{server}",
                database_url=url,
            )
            services.append(stack.enter_context(running))
        yield FourProcesses(services)
    if not isinstance(store, SqliteStore):
        assert _deadlocks(url) == 0


def _deadlocks(url: str) -> int:
    """Count the deadlocks that PostgreSQL has ended. Exact once the connections that met them are closed."""
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").fetchone()
    assert row is not None
    return int(row[0])
