"""What holds for every test, how they are shared out, and the databases that they share."""

import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

pytest.register_assert_rewrite("tests.support")

from tests.support.stores import (  # noqa: E402 - after the line above
    STORES,
    PostgresqlStore,
    SqliteStore,
    Store,
    memory_with_room,
    postgresql_server,
)

# Property tests have no time limit of their own: a busy machine is no counterexample.
settings.register_profile("tarazu", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("tarazu")


def pytest_configure() -> None:
    """Keep the folders of tests in memory, where there is room: books need no disk here. `--basetemp` overrides."""
    if (memory := memory_with_room()) is not None:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(memory))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Run the tests in one process more than there are cores: some tests wait for time-outs."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Share the tests out by file and kind of database, the longest first."""
    from tests.support.sharing import LongestFirst  # noqa: PLC0415 - xdist may be switched off

    return LongestFirst(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.fixture(scope="session")
def sqlite_store(tmp_path_factory: pytest.TempPathFactory) -> SqliteStore:
    """Migrate one file, to be copied."""
    return SqliteStore(tmp_path_factory.mktemp("template"))


@pytest.fixture(scope="session")
def postgresql_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresqlStore]:
    """Run one server, and migrate a database on it, to be copied."""
    with postgresql_server(tmp_path_factory.mktemp("server"), in_memory=True) as url:
        yield PostgresqlStore(url)


@pytest.fixture(scope="module", params=STORES)
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    """Take each kind of database in turn, the whole module on the one and then on the other."""
    store: Store = request.getfixturevalue(f"{request.param}_store")
    yield store
    store.remove_books()
