"""Open the books that the configuration names, at the revision this release works with."""

import shlex
import time

from sqlalchemy import Engine

from tarazu.store.availability import BooksUnavailableError
from tarazu.store.engine import open_engine
from tarazu.store.revision import HEAD, current_revision, no_books, refuse_newer

AWAY_S = 60
"""How long a service that starts waits for PostgreSQL."""
AWAY_PAUSE_S = 0.5


def open_books(database_url: str, *, await_s: float = 0) -> Engine:
    """Open books that are there, as they are: none are made or migrated. A server that is away is waited for, if told.

    Raises:
        BooksUnavailableError: there are none, they are of another release, or they cannot be reached or used.
    """
    engine = open_engine(database_url)
    try:
        if await_s and engine.dialect.name == "postgresql":
            _await_server(database_url, await_s)
        _require_head(engine)
    except BaseException:
        engine.dispose()
        raise
    return engine


def make_books(database_url: str) -> None:
    """See that there are books at this release's revision. PostgreSQL's are made by `tarazu db upgrade` alone.

    Several machines may work on those, and whoever migrates them decides when. A server that is away, as when a machine
    starts, is waited for.

    Raises:
        BooksUnavailableError: they cannot be reached, used or migrated.
    """
    engine = open_engine(database_url)
    try:
        if engine.dialect.name == "postgresql":
            _await_server(database_url, AWAY_S)
            _require_head(engine)
        elif current_revision(engine) != HEAD:
            from tarazu.store.migrate import upgrade  # noqa: PLC0415 - half a second that most starts do without

            upgrade(engine)
    finally:
        engine.dispose()
    if advice := privacy_advice(database_url):
        _warn("books_open_to_others", advice=advice)


def privacy_advice(database_url: str) -> str | None:
    """Tell what to do where other users of the machine can read or write the books, which hold digests and replies.

    Raises:
        BooksUnavailableError: the URL or the driver cannot be used.
    """
    engine = open_engine(database_url)
    if engine.dialect.name != "sqlite":
        return None
    from tarazu.store.sqlite import books_file, open_to_others  # noqa: PLC0415 - a driver that PostgreSQL does without

    files = open_to_others(books_file(engine))
    if not files:
        return None
    return f"Other users can read the books. Keep them out with: {shlex.join(['chmod', '600', *map(str, files)])}"


def _await_server(database_url: str, await_s: float) -> None:
    """Wait for a PostgreSQL server that is away. What else is wrong with it is told where it is used."""
    from tarazu.store.postgresql import is_away  # noqa: PLC0415 - a driver that SQLite does without

    until_s = time.monotonic() + await_s
    is_told = False
    while is_away(database_url) and time.monotonic() < until_s:
        if not is_told:
            _warn("database_awaited", at_most_s=await_s)
            is_told = True
        time.sleep(AWAY_PAUSE_S)


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


def _warn(event: str, **values: object) -> None:
    import structlog  # noqa: PLC0415 - commands that are quiet do without it, and without what draws its colours

    structlog.get_logger().warning(event, **values)
