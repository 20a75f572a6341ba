"""A back office without a thread, for tests in which time is virtual."""

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection

from tarazu.service.back_office import BackOffice
from tarazu.store.availability import BooksUnavailableError
from tarazu.store.engine import transaction
from tests.support.books import Books

T = TypeVar("T")


class InlineOffice(BackOffice):
    """Works in the event loop itself, so that virtual time passes only by pauses. It counts changes, done or not."""

    def __init__(self, books: Books) -> None:
        super().__init__(books.engine, books.catalogue, books.clock)
        self.changes = 0
        self.is_away = False

    async def look(self, look: Callable[[Connection], T]) -> T:
        """Read the books here and now."""
        with transaction(self._engine, read_only=True) as connection:
            return look(connection)

    async def change(self, change: Callable[[Connection], T]) -> T:
        """Change the books here and now, unless they are away."""
        self.changes += 1
        if self.is_away:
            raise BooksUnavailableError("away")
        with transaction(self._engine) as connection:
            return change(connection)
