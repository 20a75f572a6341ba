"""Open the books that the configuration names, at the revision this release works with."""

from sqlalchemy import Engine

from tarazu.store.engine import open_engine
from tarazu.store.migrate import upgrade


def open_books(database_url: str) -> Engine:
    """Open the database, made or migrated as needed.

    Raises:
        BooksUnavailableError: it cannot be reached, used or migrated.
    """
    engine = open_engine(database_url)
    upgrade(engine)
    return engine
