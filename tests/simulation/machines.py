"""The kinds of machine, each switched on for the length of a block."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.simulation.machine import Machine
from tests.simulation.postgresql_machine import PostgresqlMachine
from tests.simulation.sqlite_machine import SqliteMachine
from tests.support.stores import PostgresqlStore, postgresql_server

MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of our own is made in it
"""Files there are never synced to a disk, which a simulated power cut does not ask for."""


@contextmanager
def sqlite_machine() -> Iterator[Machine]:
    """Keep its file in memory, where there is such a place."""
    place = MEMORY if MEMORY.is_dir() else None
    with TemporaryDirectory(prefix="tarazu-", dir=place) as folder, closing(SqliteMachine(Path(folder))) as machine:
        yield machine


@contextmanager
def postgresql_machine() -> Iterator[Machine]:
    """Run a server of its own."""
    with TemporaryDirectory(prefix="tarazu-") as name:
        folder = Path(name)
        with postgresql_server(folder) as url, closing(PostgresqlMachine(PostgresqlStore(url), folder)) as machine:
            yield machine


MACHINES: dict[str, Callable[[], AbstractContextManager[Machine]]] = {
    "sqlite": sqlite_machine,
    "postgresql": postgresql_machine,
}
