"""What the tests of the admin API share: one service on each store for all modules, and a program that may do all.

Each test makes what it works on, under names of its own. test_openapi, test_page and test_refusals need no service.
"""

from collections.abc import Iterator

import pytest

from tests.support.admin import AdminClient, admin_client
from tests.support.backend import ScriptedBackend
from tests.support.service import RunningService, checked
from tests.support.stores import Store


@pytest.fixture(scope="package")
def store(store_kind: str, request: pytest.FixtureRequest) -> Store:
    """Have one database for the package, and keep the books of all its modules in it."""
    store: Store = request.getfixturevalue(f"{store_kind}_store")
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
