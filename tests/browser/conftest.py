"""The browser, once for each module: while it runs, its event loop is in the way of others."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.support.backend import ScriptedBackend
from tests.support.browser import ENGLISH, PERSIAN, Spoken, chromium
from tests.support.scale import EVERYTHING
from tests.support.service import RunningService, checked
from tests.support.stores import Store


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Run Chromium."""
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def backend() -> Iterator[ScriptedBackend]:
    """Run a model server."""
    with ScriptedBackend() as backend:
        yield backend


@pytest.fixture(scope="module")
def service(
    store: Store, backend: ScriptedBackend, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningService]:
    """Run the service on either store; its books must balance at the end."""
    folder = tmp_path_factory.mktemp("service")
    with checked(RunningService(folder, backend.url, database_url=store.new_books(folder))) as service:
        yield service


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Go a way through the pages in the module's language; where everything is tried, in each."""
    if "spoken" in metafunc.fixturenames:
        chosen = (ENGLISH, PERSIAN) if EVERYTHING else (metafunc.module.SPOKEN,)
        metafunc.parametrize("spoken", chosen, indirect=True, ids=[spoken.language for spoken in chosen])


@pytest.fixture(scope="module")
def spoken(request: pytest.FixtureRequest) -> Spoken:
    """The language of the way, from `pytest_generate_tests`."""
    spoken: Spoken = request.param
    return spoken


@pytest.fixture(scope="module")
def base_url(service: RunningService) -> str:
    """Tell where the service is."""
    return f"http://127.0.0.1:{service.port}"
