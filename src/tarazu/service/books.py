"""Open the books that the configuration names, at the revision this release works with."""

from sqlalchemy import Engine

from tarazu.store.availability import BooksUnavailableError
from tarazu.store.engine import open_engine
from tarazu.store.revision import HEAD, current_revision


def open_books(database_url: str) -> Engine:
    """Open the database. SQLite's is made or migrated as needed; PostgreSQL's is migrated by `tarazu db upgrade` alone.

    Raises:
        BooksUnavailableError: it cannot be reached, used or migrated.
    """
    engine = open_engine(database_url)
    revision = current_revision(engine)
    if revision == HEAD:
        return engine
    from tarazu.store.migrate import refuse_newer, upgrade  # noqa: PLC0415 - half a second that most starts do without

    if engine.dialect.name == "postgresql":
        engine.dispose()
        refuse_newer(revision)
        state = "has no books yet" if revision is None else f"is at revision {revision}, this release works with {HEAD}"
        raise BooksUnavailableError(f"The database {state}. Make or migrate the books with: tarazu db upgrade")
    upgrade(engine)
    return engine
