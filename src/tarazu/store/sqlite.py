"""Books in one SQLite file, in WAL mode.

Each cursor is closed before its connection goes back to the pool, after a failure too. An error keeps the frames that
it has passed alive, and the cursor in them, until it is forgotten or collected as garbage. To end a cursor that has
failed is to wait for whoever uses the connection by then: an event loop would stand still for so long.
"""

import os
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

import pysqlite3.dbapi2
from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.pool import QueuePool

from tarazu.domain.search_form import search_form
from tarazu.store.availability import BooksUnavailableError
from tarazu.store.books_path import cannot_be_made, cannot_be_opened, looked_at, missing_folder
from tarazu.store.prepared import driver_errors
from tarazu.store.transaction_options import READ_ONLY, RELAXED

BUSY_TIMEOUT_MS = 5_000
BUSY_PAUSE_S = 0.01
CONNECTIONS_MAX = 4
CANNOT_OPEN = ("SQLITE_CANTOPEN", "SQLITE_READONLY")
"""How SQLite calls it, in the beginning of a name, where it can make no files beside the database."""
LONG_READ_CACHE_KIB = 65_536
"""Pages that a long read keeps of the books, and as much again of its scratch file."""
LOG_BYTES_KEPT_MAX = 64 * 1024 * 1024
"""What the file of the write-ahead log keeps, once a long reader or a restore that has made it grow is over."""
PRIVATE = 0o600
OF_OTHERS = 0o066
"""The rights of the group and of all others to read and to write."""
SIDE_FILES = ("-wal", "-shm", "-journal")
"""What SQLite keeps beside a database that is in use, by the end of the name."""
LEAST_VERSION = (3, 51, 3)
"""Versions 3.7.0 to 3.51.2 can corrupt a database in WAL mode when it is reset while another process writes."""


def sqlite_engine(url: URL) -> Engine:
    """Make an engine for the file, which must be there when it is first used: `make_file` makes it.

    Raises:
        BooksUnavailableError: the URL names no file, or the SQLite library is too old.
    """
    if not url.database or ":memory:" in url.database or "\0" in url.database:
        # Of memory each connection would have books of its own.
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
    event.listen(engine, "do_connect", partial(_connect, Path(url.database)))
    event.listen(engine, "connect", _guard)
    event.listen(engine, "begin", _begin)
    event.listen(engine, "commit", _commit)
    return engine


def make_file(engine: Engine) -> None:
    """Make the file where there is none, for its owner alone: it will hold digests, addresses and replies.

    Raises:
        BooksUnavailableError: it cannot be made there.
    """
    path = books_file(engine)
    if looked_at(path) is not None:
        return
    try:
        path.touch(PRIVATE)
    except FileNotFoundError:
        raise cannot_be_made(path, f"there is no folder {missing_folder(path)}") from None
    except OSError as error:
        raise cannot_be_made(path, error.strerror) from None


def books_file(engine: Engine) -> Path:
    """Tell where the books are; the file need not be there."""
    assert engine.dialect.name == "sqlite"
    assert engine.url.database is not None
    return Path(engine.url.database)


def open_to_others(path: Path) -> tuple[Path, ...]:
    """List the files of a database that other users can read or write.

    Raises:
        BooksUnavailableError: they cannot be looked at.
    """
    files = (path, *(path.with_name(path.name + end) for end in SIDE_FILES))
    return tuple(file for file in files if (found := looked_at(file)) is not None and found.st_mode & OF_OTHERS)


def connect(path: Path, *parameters: str, **options: Any) -> Any:
    """Open a database file that is there, with SQLite's URI parameters."""
    uri = f"file:{quote(os.fsencode(path.absolute()))}?{'&'.join(parameters or ('mode=rw',))}"
    return pysqlite3.dbapi2.connect(uri, uri=True, isolation_level=None, **options)


def attach_scratch(connection: Connection, schema: str) -> None:
    """Give a connection, outside a transaction, an empty file for tables that are not worth keeping.

    SQLite as it is packaged keeps temporary tables in memory, whatever their size. The file is in the folder that
    TMPDIR names, without a name of its own: it is gone when the connection is closed, or the process killed.

    Raises:
        BooksUnavailableError: the folder cannot be written to.
    """
    with closing(connection.connection.cursor()) as cursor:
        try:
            with TemporaryDirectory(prefix="tarazu-") as folder:
                cursor.execute(f"ATTACH ? AS {schema}", (str(Path(folder) / "scratch.db"),))
        except OSError as error:
            raise BooksUnavailableError(f"No room beside the books, where TMPDIR says: {error.strerror}.") from None
        for setting in ("journal_mode = OFF", "synchronous = OFF", "locking_mode = EXCLUSIVE"):
            cursor.execute(f"PRAGMA {schema}.{setting}")
        for each in ("main", schema):
            cursor.execute(f"PRAGMA {each}.cache_size = -{LONG_READ_CACHE_KIB}")


def _connect(path: Path, _dialect: object, _record: object, _arguments: object, options: dict[str, Any]) -> Any:
    """Open the file as it is, never making one; where nothing can be written, only to read."""
    kept = {name: options[name] for name in ("check_same_thread", "timeout")}
    try:
        return _opened(path, **kept)
    except pysqlite3.dbapi2.OperationalError as error:
        if not error.sqlite_errorname.startswith(CANNOT_OPEN):
            raise
    if _is_still(path):
        return _opened(path, "mode=ro", "immutable=1", **kept)
    raise cannot_be_opened(path, _reason(path))


def _opened(path: Path, *parameters: str, **options: Any) -> Any:
    connection = connect(path, *parameters, **options)
    try:
        connection.execute("SELECT 1 FROM sqlite_schema").close()
    except pysqlite3.dbapi2.Error:
        connection.close()
        raise
    return connection


def _is_still(path: Path) -> bool:
    """Tell whether nobody can be writing the file, nor has left something beside it that belongs to it."""
    try:
        is_read_only = os.statvfs(path).f_flag & os.ST_RDONLY
    except OSError:
        return False
    return bool(is_read_only) and not any(path.with_name(path.name + end).exists() for end in SIDE_FILES)


def _reason(path: Path) -> str:
    try:
        os.close(os.open(path, os.O_RDONLY))
    except OSError as error:
        return str(error.strerror)
    return f"SQLite works with files beside it, and in {path.absolute().parent} only others can make or write them"


def _guard(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # we say BEGIN ourselves, see below
    connection.create_function(search_form.__name__, 1, search_form, deterministic=True)
    with closing(connection.cursor()) as cursor:
        _use_wal(cursor)
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.execute(f"PRAGMA journal_size_limit = {LOG_BYTES_KEPT_MAX}")


def _use_wal(cursor: Any) -> None:
    """Put books into WAL mode, and a file that is still empty; nothing else is touched.

    A new file that another process is putting there too is not waited for by SQLite.
    """
    until_s = time.monotonic() + BUSY_TIMEOUT_MS / 1_000
    while True:
        try:
            if _is_of_others(cursor):
                return
            cursor.execute("PRAGMA journal_mode = WAL")
        except pysqlite3.dbapi2.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() >= until_s:
                raise
            time.sleep(BUSY_PAUSE_S)
        else:
            return


def _is_of_others(cursor: Any) -> bool:
    names = {name for (name,) in cursor.execute("SELECT name FROM sqlite_schema")}
    return bool(names) and not {"alembic_version", "accounts"} <= names


def _begin(connection: Connection) -> None:
    options = connection.get_execution_options()
    synchronous = "NORMAL" if options.get(RELAXED) else "FULL"
    with closing(connection.connection.cursor()) as cursor, driver_errors(connection):
        if connection.info.get("synchronous") != synchronous:
            cursor.execute(f"PRAGMA synchronous = {synchronous}")
            connection.info["synchronous"] = synchronous
        # A writer takes the lock at once: what it reads cannot change before it writes.
        cursor.execute("BEGIN" if options.get(READ_ONLY) else "BEGIN IMMEDIATE")


def _commit(connection: Connection) -> None:
    """See that there is a transaction: after some failures SQLite has rolled it back, and a COMMIT is no error."""
    if not connection.connection.dbapi_connection.in_transaction:  # type: ignore[union-attr]  # is pysqlite3's
        raise BooksUnavailableError("The database has rolled the transaction back.")
