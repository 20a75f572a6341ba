"""Copies of books that are in SQLite: how one is made while services write the books, and what it holds."""

import os
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pysqlite3.dbapi2
from msgspec import Struct
from sqlalchemy import Engine

from tarazu.store.engine import books_errors
from tarazu.store.sqlite import PRIVATE, connect
from tarazu.store.telling import Tell

STEP_PAGES = 1_024
"""Pages that are copied between two words on the progress, and before Ctrl-C is heard."""
MIB = 1024 * 1024


class BackupError(Exception):
    """The backup or the restore cannot be done; the books are as they were. The message says why and what to do."""


class Contents(Struct, frozen=True, kw_only=True):
    """What a copy of the books holds. `bytes` is the size of the file."""

    revision: str
    accounts: int
    requests: int
    bytes: int


def own_connection(engine: Engine) -> Any:
    """Open a connection to the books that the caller closes; it begins no transactions by itself.

    Raises:
        BooksUnavailableError: the database failed.
    """
    with books_errors():
        connection = engine.connect()
    connection.detach()
    return connection.connection.dbapi_connection


@contextmanager
def new_file(target: Path) -> Iterator[Path]:
    """Give out an empty file that takes the target's place when the block ends well, whole and on disk.

    Raises:
        BackupError: the folder cannot be written.
    """
    with folder_beside(target) as folder:
        path = folder / target.name
        with _target_errors(target):
            path.touch(PRIVATE)
        yield path
        with _target_errors(target):
            _sync(path)
            path.replace(target)
            _sync(target.parent)


@contextmanager
def folder_beside(path: Path) -> Iterator[Path]:
    """Make a folder for files that may be renamed to `path`; what is left in it goes at the end.

    Raises:
        BackupError: the folder that `path` is in cannot be written.
    """
    with _target_errors(path):
        folder = TemporaryDirectory(prefix=f".{path.name}-", dir=path.parent)
    with folder as name:
        yield Path(name)


def copy_books(source: Any, path: Path, tell: Tell) -> None:
    """Copy a database, as the source's connection sees it now, to a file that is there and empty.

    All is read in one transaction. Without one, the copy would begin again whenever another process writes between two
    steps, for ever under load. In WAL mode such a reader keeps no writer waiting.

    Raises:
        BackupError: the database cannot be read, or the file not be written.
    """
    try:
        require_room(path.parent, size_of(source))
        with closing(connect(path)) as copy:
            # The file is synced at the end, or thrown away: until then nothing in it has to survive.
            for setting in ("journal_mode = OFF", "synchronous = OFF", "locking_mode = EXCLUSIVE"):
                copy.execute(f"PRAGMA {setting}").close()
            source.execute("BEGIN")
            try:
                is_empty(source)  # a transaction reads the state of its first look
                source.backup(copy, pages=STEP_PAGES, progress=lambda _, left, all_: tell("Copying", share(left, all_)))
            finally:
                source.execute("ROLLBACK")
            # The pages say WAL mode, in which a file is opened only where SQLite can make others beside it.
            copy.execute("PRAGMA journal_mode = DELETE").close()
    except pysqlite3.dbapi2.Error as error:
        raise BackupError(f"The copy failed: {error}.") from error


def check_intact(copy: Any, tell: Tell) -> None:
    """Have SQLite check every page, index and constraint of a database.

    Raises:
        BackupError: it is damaged.
    """
    tell("Checking", None)
    try:
        (found,) = copy.execute("PRAGMA integrity_check(1)").fetchone()
        orphan = copy.execute("PRAGMA foreign_key_check").fetchone()
    except pysqlite3.dbapi2.Error as error:
        raise BackupError(f"It is damaged: {error}.") from error
    if found != "ok":
        raise BackupError(f"It is damaged: {' '.join(found.split())}.")
    if orphan is not None:
        raise BackupError(f"It is damaged: a row of {orphan[0]} belongs to one of {orphan[2]} that is not there.")


def contents_of(copy: Any) -> Contents | None:
    """Tell what a database holds; None when it is none of Tarazu's."""
    revision = revision_of(copy)
    if revision is None:
        return None
    try:
        (accounts,) = copy.execute("SELECT count(*) FROM accounts").fetchone()
        (requests,) = copy.execute("SELECT count(*) FROM requests").fetchone()
    except pysqlite3.dbapi2.OperationalError:  # there is no such table
        return None
    return Contents(revision=revision, accounts=accounts, requests=requests, bytes=size_of(copy))


def revision_of(connection: Any) -> str | None:
    """Tell the revision of the books; None where there are none."""
    try:
        row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    except pysqlite3.dbapi2.OperationalError:  # there is no such table
        return None
    return None if row is None else str(row[0])


def is_empty(connection: Any) -> bool:
    """Tell whether a database has no tables at all."""
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    return bool(tables == 0)


def size_of(connection: Any) -> int:
    """Tell how many bytes a database has."""
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    return int(pages) * page_bytes(connection)


def page_bytes(connection: Any) -> int:
    """Tell how many bytes a page of a database has."""
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    return int(size)


def require_room(folder: Path, needed_bytes: int) -> None:
    """Refuse to fill a disk up: the books may be on it too.

    Raises:
        BackupError: there is not enough room in the folder.
    """
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes < needed_bytes:
        raise BackupError(
            f"There is no room: {needed_bytes / MIB:,.1f} MiB are needed, {free_bytes / MIB:,.1f} MiB are free."
        )


def share(left: int, all_: int) -> float:
    """Tell how much of a copy is done, from 0 to 1."""
    return 1 - left / max(all_, 1)


@contextmanager
def _target_errors(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BackupError(f"{target} cannot be written: {error.strerror}.") from error


def _sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
