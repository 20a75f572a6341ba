"""New books for every test, on either kind of database, and the event loop that its ledger runs beside."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.books import Books, open_books
from tests.support.stores import Store


@pytest.fixture
def anyio_backend() -> str:
    """Run the asynchronous tests on asyncio, as the service does."""
    return "asyncio"


@pytest.fixture
def books(store: Store, tmp_path: Path) -> Iterator[Books]:
    """Open new, empty books. Whatever a test has done to them, they must balance at its end, or it says why not."""
    with open_books(store, tmp_path) as books:
        yield books
