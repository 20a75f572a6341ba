"""What holds for every test, and the databases that they share."""

from collections.abc import Iterator

import pytest

pytest.register_assert_rewrite("tests.support")

from tests.support.stores import (  # noqa: E402 - after the line above
    STORES,
    PostgresqlStore,
    SqliteStore,
    Store,
    postgresql_server,
)


@pytest.fixture(scope="session")
def sqlite_store(tmp_path_factory: pytest.TempPathFactory) -> SqliteStore:
    """Migrate one file, to be copied."""
    return SqliteStore(tmp_path_factory.mktemp("template"))


@pytest.fixture(scope="session")
def postgresql_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresqlStore]:
    """Run one server, and migrate a database on it, to be copied."""
    with postgresql_server(tmp_path_factory.mktemp("server")) as url:
        yield PostgresqlStore(url)


@pytest.fixture(scope="module", params=STORES)
def store(request: pytest.FixtureRequest) -> Store:
    """Take each kind of database in turn, the whole module on the one and then on the other."""
    store: Store = request.getfixturevalue(f"{request.param}_store")
    return store
