"""The kinds of machine, each switched on for the length of a block."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager

from tests.simulation.machine import Machine
from tests.simulation.postgresql_machine import PostgresqlMachine
from tests.simulation.sqlite_machine import SqliteMachine
from tests.support.stores import PostgresqlStore, folder_in_memory, postgresql_server


@contextmanager
def sqlite_machine() -> Iterator[Machine]:
    """Keep its file in memory, where there is room: a simulated power cut asks for no disk."""
    with folder_in_memory() as folder, closing(SqliteMachine(folder)) as machine:
        yield machine


@contextmanager
def postgresql_machine() -> Iterator[Machine]:
    """Run a server of its own."""
    with (
        folder_in_memory() as folder,
        postgresql_server(folder, in_memory=True) as url,
        closing(PostgresqlMachine(PostgresqlStore(url), folder)) as machine,
    ):
        yield machine


MACHINES: dict[str, Callable[[], AbstractContextManager[Machine]]] = {
    "sqlite": sqlite_machine,
    "postgresql": postgresql_machine,
}
