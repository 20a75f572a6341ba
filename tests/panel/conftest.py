"""What the tests of the panel share: a scripted backend, and a running service for each module that asks one."""

from collections.abc import Iterator

import pytest

from tests.support.backend import ScriptedBackend
from tests.support.service import RunningService, checked
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
def service(
    store: Store, module_backend: ScriptedBackend, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningService]:
    """A running service for the module; at the end its books must balance, and nothing unforeseen have happened."""
    folder = tmp_path_factory.mktemp("service")
    url = store.new_books(folder)
    with checked(RunningService(folder, module_backend.url, database_url=url)) as running:
        yield running
