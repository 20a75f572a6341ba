"""Open the books that the configuration names, at the revision this release works with."""

from sqlalchemy import Engine

from tarazu.store.availability import BooksUnavailableError
from tarazu.store.engine import open_engine
from tarazu.store.revision import HEAD, current_revision, no_books, refuse_newer


def open_books(database_url: str) -> Engine:
    """Open books that are there, as they are: none are made or migrated.

    Raises:
        BooksUnavailableError: there are none, they are of another release, or they cannot be reached or used.
    """
    engine = open_engine(database_url)
    try:
        _require_head(engine)
    except BaseException:
        engine.dispose()
        raise
    return engine


def make_books(database_url: str) -> None:
    """See that there are books at this release's revision. PostgreSQL's are made by `tarazu db upgrade` alone.

    Several machines may work on those, and whoever migrates them decides when.

    Raises:
        BooksUnavailableError: they cannot be reached, used or migrated.
    """
    engine = open_engine(database_url)
    try:
        if engine.dialect.name == "postgresql":
            _require_head(engine)
        elif current_revision(engine) != HEAD:
            from tarazu.store.migrate import upgrade  # noqa: PLC0415 - half a second that most starts do without

            upgrade(engine)
    finally:
        engine.dispose()


def _require_head(engine: Engine) -> None:
    revision = current_revision(engine)
    if revision == HEAD:
        return
    refuse_newer(revision)
    if revision is not None:
        raise BooksUnavailableError(
            f"The database is at revision {revision}, of an older release; this release works with {HEAD}. "
            "Migrate the books with: tarazu db upgrade"
        )
    raise no_books(engine)
