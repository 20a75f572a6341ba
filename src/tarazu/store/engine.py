"""Open the database, with the guards that its books need."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pysqlite3.dbapi2
from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError, IntegrityError, ProgrammingError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.pool import QueuePool

SQLITE_BUSY_TIMEOUT_MS = 5_000
SQLITE_LEAST_VERSION = (3, 51, 3)
"""Versions 3.7.0 to 3.51.2 can corrupt a database in WAL mode when it is reset while another process writes."""
READ_ONLY = "tarazu_read_only"
"""Execution option: the transaction only reads. It takes no write lock, and sees one state of the books."""
RELAXED = "tarazu_relaxed"
"""Execution option: the commit need not survive a power cut. It always survives the death of the process."""


class BooksUnavailableError(Exception):
    """The database cannot be reached or take a write now; nothing was changed."""


def open_engine(database_url: str) -> Engine:
    """Make an engine for `sqlite:///FILE`; the file is created at the first connection.

    Raises:
        BooksUnavailableError: the URL or the SQLite library cannot be used.
    """
    try:
        url = make_url(database_url)
    except ArgumentError:
        raise BooksUnavailableError("database.url is not a URL; write for example sqlite:///tarazu.db.") from None
    if url.get_backend_name() != "sqlite":
        raise BooksUnavailableError(f"database.url: {url.get_backend_name()} is not supported; use sqlite:///FILE.")
    if not url.database or ":memory:" in url.database:
        # Each connection would have books of its own.
        raise BooksUnavailableError("database.url must name a file, for example sqlite:///tarazu.db.")
    if pysqlite3.dbapi2.sqlite_version_info < SQLITE_LEAST_VERSION:
        raise BooksUnavailableError(
            f"SQLite {pysqlite3.dbapi2.sqlite_version} can corrupt its files; "
            "Tarazu needs 3.51.3 or newer: pip install --upgrade pysqlite3."
        )
    return _sqlite_engine(url)


@contextmanager
def transaction(engine: Engine, *, read_only: bool = False, relaxed: bool = False) -> Iterator[Connection]:
    """Work in one transaction: committed at the end, rolled back on any error.

    Raises:
        BooksUnavailableError: the database failed; the transaction had no effect.
    """
    with books_errors(), engine.connect() as connection:
        connection.execution_options(**{READ_ONLY: read_only, RELAXED: relaxed})
        with connection.begin():
            yield connection


@contextmanager
def books_errors() -> Iterator[None]:
    """Turn the driver's failures to reach, read or write the database into BooksUnavailableError."""
    try:
        yield
    except (IntegrityError, ProgrammingError, DataError):
        raise  # a broken rule or statement: our fault, not the database's state
    except DBAPIError as error:
        # The driver's own words carry no values: "database is locked", "database or disk is full".
        raise BooksUnavailableError(f"The database failed: {error.orig}.") from error
    except PoolTimeoutError:
        raise BooksUnavailableError("All connections to the database are in use.") from None


def _sqlite_engine(url: URL) -> Engine:
    engine = create_engine(
        url,
        module=pysqlite3.dbapi2,
        poolclass=QueuePool,
        pool_size=4,
        max_overflow=0,
        pool_timeout=SQLITE_BUSY_TIMEOUT_MS / 1_000,
        hide_parameters=True,  # an error's text may reach a log
        connect_args={"check_same_thread": False, "timeout": SQLITE_BUSY_TIMEOUT_MS / 1_000},
    )

    @event.listens_for(engine, "connect")
    def _guard(connection: Any, _record: object) -> None:
        connection.isolation_level = None  # we say BEGIN ourselves, see below
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode = WAL")
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.close()

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        options = connection.get_execution_options()
        connection.exec_driver_sql(f"PRAGMA synchronous = {'NORMAL' if options.get(RELAXED) else 'FULL'}")
        # A writer takes the lock at once: what it reads cannot change before it writes.
        connection.exec_driver_sql("BEGIN" if options.get(READ_ONLY) else "BEGIN IMMEDIATE")

    return engine
