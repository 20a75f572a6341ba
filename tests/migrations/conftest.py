"""What the tests of migrations share: a scripted backend, and books that a release has left."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.migrations.releases import ReleasedService, source_of
from tests.support.backend import ScriptedBackend
from tests.support.service import RunningService
from tests.support.stores import Store


@pytest.fixture
def backend() -> Iterator[ScriptedBackend]:
    """A model server."""
    with ScriptedBackend() as backend:
        yield backend


@pytest.fixture(scope="session")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the code of the releases."""
    return tmp_path_factory.mktemp("sources")


@pytest.fixture
def released(revision: str, store: Store, backend: ScriptedBackend, sources: Path, tmp_path: Path) -> ReleasedService:
    """The release of the test's `revision`, with two workers, not started, on books that it has made: empty ones."""
    folder = tmp_path / "released"
    folder.mkdir()
    service = ReleasedService(
        source_of(revision, sources), folder, backend.url, server="workers = 2", database_url=store.nothing(tmp_path)
    )
    made = service.json("db", "upgrade")
    assert made == {"before": None, "after": revision}
    return service


@pytest.fixture
def updated(released: ReleasedService, backend: ScriptedBackend, tmp_path: Path) -> RunningService:
    """This tree's service on the same books, not started."""
    folder = tmp_path / "updated"
    folder.mkdir()
    return RunningService(folder, backend.url, server="workers = 2", database_url=released.configuration.database_url)
