"""The processes of a running service, as the kernel shows and treats them."""

import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import NullPool, create_engine, text

from tarazu.service.worker import WORKER_NAME
from tarazu.store.engine import transaction
from tarazu.store.schema import metadata

if TYPE_CHECKING:
    from tests.support.service import RunningService

KIB = 1024
WORKER = f"{WORKER_NAME}\n".encode()


def workers(service: "RunningService") -> list[int]:
    """List the process ids of the workers; none once the service has ended."""
    return [child for child in children(service) if _is_worker(child)]


def is_named(process: int, name: str) -> bool:
    """Tell whether `ps -o comm` shows a process under this name."""
    return _read(Path(f"/proc/{process}/comm")) == f"{name}\n".encode()


def _is_worker(child: int) -> bool:
    """Tell a worker by its name, or one of a release that had no name for it by how Python begins it."""
    proc = Path(f"/proc/{child}")
    return _read(proc / "comm") == WORKER or b"multiprocessing.spawn" in _read(proc / "cmdline")


def local_models(service: "RunningService") -> list[int]:
    """List the process ids of the local models."""
    return [child for child in children(service) if b"local_server" in _read(Path(f"/proc/{child}/cmdline"))]


def children(service: "RunningService") -> list[int]:
    """List the children of the main process, whichever of its threads has begun them."""
    if service.process.poll() is not None:
        return []
    tasks = Path(f"/proc/{service.process.pid}/task").iterdir()
    return [int(child) for task in tasks for child in _read(task / "children").split()]


def _read(path: Path) -> bytes:
    """Read what the kernel says of a thread or a process: nothing, when that has just ended."""
    try:
        return path.read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def threads(pid: int) -> list[int]:
    """List the thread ids of a process."""
    return [int(task.name) for task in Path(f"/proc/{pid}/task").iterdir()]


def has_ended(pid: int) -> bool:
    """Tell whether a process is no more."""
    stat = _read(Path(f"/proc/{pid}/stat"))
    return not stat or stat.rpartition(b")")[2].split()[0] == b"Z"


def open_files(pid: int) -> int:
    """Count the open files of a process, connections among them."""
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


@contextmanager
def no_file_left(pid: int) -> Iterator[None]:
    """Let the process open no more files while the block runs; those that are open stay."""
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    listed = list(Path(f"/proc/{pid}/fd").iterdir())
    taken = {int(file.name) for file in listed if file.is_symlink()}  # the list itself was open, and is no more
    lowest_free = next(number for number in count() if number not in taken)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (lowest_free, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


def clients(pid: int, port: int) -> set[int]:
    """List the ports from which others are connected to this port of a process, over IPv4."""
    held = set()
    for file in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            held.add(str(file.readlink()))
    found = set()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, remote, *others = line.split()
        inode = others[6]
        if f"socket:[{inode}]" in held and _port(local) == port:
            found.add(_port(remote))
    return found


def _port(address: str) -> int:
    return int(address.partition(":")[2], 16)


def peak_bytes(pid: int) -> int:
    """Tell the most memory that a process has ever had."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * KIB


@contextmanager
def no_room_on_disk(pid: int) -> Iterator[None]:
    """Let no file of the process grow, nor be written at all beyond its first byte, as on a disk that fails."""
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (1, before[1]))
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


_LOCK = """
import fcntl, sys
with open(sys.argv[1], "r+b") as index:
    fcntl.lockf(index, fcntl.LOCK_EX, 8, 120)
    print("locked", flush=True)
    sys.stdin.read()
"""
"""Take all eight locks of the write-ahead log's index, as SQLite does while it recovers a database."""


@contextmanager
def books_out_of_reach(service: "RunningService") -> Iterator[None]:
    """Let nobody read or write the books while the block runs, as when another process has them all to itself."""
    with _database_closed(service) if _is_postgresql(service) else _files_locked(service):
        yield


@contextmanager
def _files_locked(service: "RunningService") -> Iterator[None]:
    index = service.folder / "tarazu.db-shm"
    with subprocess.Popen(
        [sys.executable, "-c", _LOCK, str(index)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as locker:
        assert locker.stdout is not None
        assert locker.stdout.readline() == "locked\n"
        try:
            yield
        finally:
            locker.communicate("")


@contextmanager
def _database_closed(service: "RunningService") -> Iterator[None]:
    """End all connections to the database, and take no new ones."""
    url = service.engine.url
    server = create_engine(url.set(database="postgres"), isolation_level="AUTOCOMMIT", poolclass=NullPool)
    service.engine.dispose()  # the tests' own connections
    with server.connect() as connection:
        connection.exec_driver_sql(f"ALTER DATABASE {url.database} ALLOW_CONNECTIONS false")
        try:
            connection.execute(
                text("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = :name"),
                {"name": url.database},
            )
            yield
        finally:
            connection.exec_driver_sql(f"ALTER DATABASE {url.database} ALLOW_CONNECTIONS true")


@contextmanager
def books_being_written(service: "RunningService") -> Iterator[None]:
    """Let nobody else write the books while the block runs, nor lock a row to do so."""
    with transaction(service.engine) as connection:  # on SQLite there is one writer at a time
        if _is_postgresql(service):
            connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 0")
            connection.exec_driver_sql(f"LOCK TABLE {', '.join(metadata.tables)} IN EXCLUSIVE MODE")
        yield


def _is_postgresql(service: "RunningService") -> bool:
    return service.engine.dialect.name == "postgresql"


def pass_deadlines(service: "RunningService") -> None:
    """Let the deadlines of all holds have passed, a second ago."""
    with transaction(service.engine) as connection:
        passed_ms = time.time_ns() // 1_000_000 - 1_000
        connection.execute(
            text("UPDATE requests SET deadline_ms = :passed_ms WHERE state = 'held'"), {"passed_ms": passed_ms}
        )


def processor_ns(pid: int) -> int:
    """Tell the processor time that a process has taken, all its threads that are there together."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int(_read(task / "schedstat").partition(b" ")[0] or 0) for task in tasks)
