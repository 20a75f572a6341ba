"""New books for every test, and the event loop that its ledger runs beside."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.books import Books, make_template, open_books


@pytest.fixture
def anyio_backend() -> str:
    """Run the asynchronous tests on asyncio, as the service does."""
    return "asyncio"


@pytest.fixture(scope="session")
def books_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Migrate one database, to be copied."""
    return make_template(tmp_path_factory.mktemp("template"))


@pytest.fixture
def books(books_template: Path, tmp_path: Path) -> Iterator[Books]:
    """Open new, empty books. Whatever a test has done to them, they must balance at its end, or it says why not."""
    with open_books(books_template, tmp_path) as books:
        yield books
