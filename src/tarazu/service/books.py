"""Open the books that the configuration names, at the revision this release works with."""

from sqlalchemy import Engine

from tarazu.store.engine import open_engine
from tarazu.store.revision import HEAD, current_revision


def open_books(database_url: str) -> Engine:
    """Open the database, made or migrated as needed.

    Raises:
        BooksUnavailableError: it cannot be reached, used or migrated.
    """
    engine = open_engine(database_url)
    if current_revision(engine) != HEAD:
        from tarazu.store.migrate import upgrade  # noqa: PLC0415 - half a second that most starts do without

        upgrade(engine)
    return engine
