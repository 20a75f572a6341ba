"""What the black-box tests of the API share: a scripted backend and a running service for each module.

A module whose claims are about the books is marked `both_stores`: its service takes them from `store`, in SQLite and
then in PostgreSQL.
"""

from collections.abc import Iterator

import pytest

from tests.support.backend import ScriptedBackend
from tests.support.service import CATALOGUE, RunningService, checked
from tests.support.set_clock import NOON, SetClock, service_by
from tests.support.stores import Store


@pytest.fixture(scope="module")
def module_backend() -> Iterator[ScriptedBackend]:
    """A model server for the module's service."""
    with ScriptedBackend() as backend:
        yield backend


@pytest.fixture(autouse=True)
def backend(module_backend: ScriptedBackend) -> ScriptedBackend:
    """The module's model server, well-behaved again."""
    module_backend.reset()
    return module_backend


@pytest.fixture(scope="module")
def catalogue() -> str:
    """What the module's service sells; a module that needs something else has a fixture of this name."""
    return CATALOGUE


@pytest.fixture(scope="module")
def service(
    store: Store, module_backend: ScriptedBackend, catalogue: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningService]:
    """A running service for the module; at the end its books must balance, and nothing unforeseen have happened."""
    folder = tmp_path_factory.mktemp("service")
    url = store.new_books(folder)
    with checked(RunningService(folder, module_backend.url, catalogue=catalogue, database_url=url)) as running:
        yield running


@pytest.fixture(scope="module")
def clock(tmp_path_factory: pytest.TempPathFactory) -> SetClock:
    """The time of the module's service, in a module that runs it by this clock."""
    return SetClock(tmp_path_factory.mktemp("clock"))


@pytest.fixture(scope="module")
def service_by_clock(
    store: Store,
    module_backend: ScriptedBackend,
    catalogue: str,
    tmp_path_factory: pytest.TempPathFactory,
    clock: SetClock,
) -> Iterator[RunningService]:
    """A running service that tells the time by `clock`, for a module whose `service` it is."""
    folder = tmp_path_factory.mktemp("service")
    url = store.new_books(folder)
    with service_by(clock, folder, module_backend.url, catalogue=catalogue, database_url=url) as running:
        yield running


@pytest.fixture
def noon(clock: SetClock, backend: ScriptedBackend) -> None:
    """Begin the test at the same time as all others, with a model that answers."""
    clock.set(NOON)
    assert backend.received == []
