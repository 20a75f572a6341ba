"""What the tests of the admin API share: one service on each store for all modules, and a program that may do all."""

from collections.abc import Iterator

import pytest

from tests.support.admin import AdminClient, admin_client
from tests.support.backend import ScriptedBackend
from tests.support.service import RunningService, checked
from tests.support.stores import STORES, Store


@pytest.fixture(scope="package", params=STORES)
def store(request: pytest.FixtureRequest) -> Store:
    """Take each kind of database in turn."""
    store: Store = request.getfixturevalue(f"{request.param}_store")
    return store


@pytest.fixture(scope="package")
def module_backend() -> Iterator[ScriptedBackend]:
    """A model server for the service."""
    with ScriptedBackend() as backend:
        yield backend


@pytest.fixture(scope="package")
def service(
    store: Store, module_backend: ScriptedBackend, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningService]:
    """A running service; at the end its books must balance, and nothing unforeseen have happened."""
    folder = tmp_path_factory.mktemp("service")
    with checked(RunningService(folder, module_backend.url, database_url=store.new_books(folder))) as running:
        yield running


@pytest.fixture(scope="package")
def admin(service: RunningService) -> AdminClient:
    """A program that may do everything."""
    return admin_client(service)
