"""Books in one SQLite file, in WAL mode."""

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pysqlite3.dbapi2
from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.pool import QueuePool

from tarazu.store.availability import BooksUnavailableError
from tarazu.store.prepared import driver_errors
from tarazu.store.transaction_options import READ_ONLY, RELAXED

BUSY_TIMEOUT_MS = 5_000
BUSY_PAUSE_S = 0.01
CONNECTIONS_MAX = 4
LONG_READ_CACHE_KIB = 65_536
"""Pages that a long read keeps of the books, and as much again of its scratch file."""
LOG_BYTES_KEPT_MAX = 64 * 1024 * 1024
"""What the file of the write-ahead log keeps, once a long reader or a restore that has made it grow is over."""
LEAST_VERSION = (3, 51, 3)
"""Versions 3.7.0 to 3.51.2 can corrupt a database in WAL mode when it is reset while another process writes."""


def sqlite_engine(url: URL) -> Engine:
    """Make an engine for the file.

    Raises:
        BooksUnavailableError: the URL names no file, or the SQLite library is too old.
    """
    if not url.database or ":memory:" in url.database:
        # Each connection would have books of its own.
        raise BooksUnavailableError("database.url must name a file, for example sqlite:///tarazu.db.")
    if pysqlite3.dbapi2.sqlite_version_info < LEAST_VERSION:
        raise BooksUnavailableError(
            f"SQLite {pysqlite3.dbapi2.sqlite_version} can corrupt its files; "
            "Tarazu needs 3.51.3 or newer: pip install --upgrade pysqlite3."
        )
    engine = create_engine(
        url,
        module=pysqlite3.dbapi2,
        poolclass=QueuePool,
        pool_size=CONNECTIONS_MAX,
        max_overflow=0,
        pool_timeout=BUSY_TIMEOUT_MS / 1_000,
        hide_parameters=True,  # an error's text may reach a log
        connect_args={"check_same_thread": False, "timeout": BUSY_TIMEOUT_MS / 1_000},
    )
    event.listen(engine, "connect", _guard)
    event.listen(engine, "begin", _begin)
    event.listen(engine, "commit", _commit)
    return engine


def attach_scratch(connection: Connection, schema: str) -> None:
    """Give a connection, outside a transaction, an empty file for tables that are not worth keeping.

    SQLite as it is packaged keeps temporary tables in memory, whatever their size. The file is in the folder that
    TMPDIR names, without a name of its own: it is gone when the connection is closed, or the process killed.

    Raises:
        BooksUnavailableError: the folder cannot be written to.
    """
    cursor = connection.connection.cursor()
    try:
        with TemporaryDirectory(prefix="tarazu-") as folder:
            cursor.execute(f"ATTACH ? AS {schema}", (str(Path(folder) / "scratch.db"),))
    except OSError as error:
        raise BooksUnavailableError(f"No room beside the books, where TMPDIR says: {error.strerror}.") from None
    for setting in ("journal_mode = OFF", "synchronous = OFF", "locking_mode = EXCLUSIVE"):
        cursor.execute(f"PRAGMA {schema}.{setting}")
    for each in ("main", schema):
        cursor.execute(f"PRAGMA {each}.cache_size = -{LONG_READ_CACHE_KIB}")
    cursor.close()


def _guard(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # we say BEGIN ourselves, see below
    cursor = connection.cursor()
    _use_wal(cursor)
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.execute(f"PRAGMA journal_size_limit = {LOG_BYTES_KEPT_MAX}")
    cursor.close()


def _use_wal(cursor: Any) -> None:
    """Put the file into WAL mode. A new file that another process is putting there too is not waited for by SQLite."""
    until_s = time.monotonic() + BUSY_TIMEOUT_MS / 1_000
    while True:
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
        except pysqlite3.dbapi2.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() >= until_s:
                raise
            time.sleep(BUSY_PAUSE_S)
        else:
            return


def _begin(connection: Connection) -> None:
    options = connection.get_execution_options()
    synchronous = "NORMAL" if options.get(RELAXED) else "FULL"
    cursor = connection.connection.cursor()
    with driver_errors(connection):
        if connection.info.get("synchronous") != synchronous:
            cursor.execute(f"PRAGMA synchronous = {synchronous}")
            connection.info["synchronous"] = synchronous
        # A writer takes the lock at once: what it reads cannot change before it writes.
        cursor.execute("BEGIN" if options.get(READ_ONLY) else "BEGIN IMMEDIATE")
    cursor.close()


def _commit(connection: Connection) -> None:
    """See that there is a transaction: after some failures SQLite has rolled it back, and a COMMIT is no error."""
    if not connection.connection.dbapi_connection.in_transaction:  # type: ignore[union-attr]  # is pysqlite3's
        raise BooksUnavailableError("The database has rolled the transaction back.")
