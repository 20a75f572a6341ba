"""Books for the tests of a module, made new again for each test."""

from collections.abc import Iterator

import pytest

from tests.support.books import Books, empty_books, open_books
from tests.support.stores import Store
from tests.support.values import NOON_MS, make_catalogue


@pytest.fixture(scope="module")
def module_books(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Books]:
    """Open books for the whole module."""
    with open_books(store, tmp_path_factory.mktemp("books")) as books:
        yield books


@pytest.fixture
def books(module_books: Books) -> Iterator[Books]:
    """Empty books, at noon; whatever a test has done to them, they must balance at its end."""
    empty_books(module_books.engine)
    module_books.clock.now_ms = NOON_MS
    module_books.catalogue = make_catalogue()
    yield module_books
    module_books.assert_balanced()
