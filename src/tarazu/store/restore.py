"""Put a backup in the place of the books, while services work on them: they see the books before or after, whole."""

import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pysqlite3.dbapi2
from msgspec import Struct
from sqlalchemy import URL, Engine

from tarazu.store.audit import audit
from tarazu.store.availability import BooksUnavailableError
from tarazu.store.books_path import looked_at
from tarazu.store.copies import (
    STEP_PAGES,
    BackupError,
    Contents,
    check_intact,
    contents_of,
    copy_books,
    is_empty,
    new_file,
    own_connection,
    page_bytes,
    require_room,
    revision_of,
    share,
    size_of,
)
from tarazu.store.revision import HEAD
from tarazu.store.sqlite import SIDE_FILES, books_file, connect, make_file, sqlite_engine
from tarazu.store.telling import Tell

LOCK_TIMEOUT_S = 30
"""How long a restore waits for its turn to write, among services that write without pause."""
LOCK_PAUSE_S = 0.001
NO_DEADLINE_MS = 0
"""A backup's holds may all be overdue: they were running when it was made, and are swept after the restore."""


class PreparedBackup(Struct, frozen=True, kw_only=True):
    """A copy of a backup that may take the place of the books.

    `backed_up` is what was found in the file, `contents` what the copy holds, at the revision of this release.
    """

    path: Path
    backed_up: Contents
    contents: Contents


def prepare(engine: Engine, file: Path, folder: Path, tell: Tell) -> PreparedBackup:
    """Copy a backup into a folder, check it, and bring it to this release's revision. The file itself stays as it is.

    Raises:
        BackupError: it is no intact backup whose figures balance, or the books are of another revision.
        BooksUnavailableError: the books cannot be read.
    """
    if not file.is_file():
        raise BackupError(f"There is no file {file}.")
    if looked_at(books_file(engine)) is not None and file.samefile(books_file(engine)):
        raise BackupError(f"{file} is the database itself.")
    make_file(engine)
    with closing(own_connection(engine)) as live:
        _check_live(live)
        live_page_bytes = page_bytes(live)
    path = folder / "prepared.db"
    path.touch()
    try:
        with closing(_open_backup(file)) as source:
            copy_books(source, path, tell)
            if file.stat().st_size % page_bytes(source):  # SQLite would take what is missing for zeros
                raise BackupError("It is damaged: it ends in the middle of a page.")  # noqa: TRY301 - as below
        with closing(connect(path)) as copy:
            check_intact(copy, tell)
            backed_up = contents_of(copy)
            if backed_up is None:
                raise BackupError("It holds no books of Tarazu.")  # noqa: TRY301 - named below, as all refusals are
            if page_bytes(copy) != live_page_bytes:  # a database in WAL mode takes no pages of another size
                copy.execute(f"PRAGMA page_size = {live_page_bytes}").close()
                copy.execute("VACUUM").close()
        _migrate_and_audit(path, backed_up, tell)
    except (BackupError, BooksUnavailableError, pysqlite3.dbapi2.Error) as error:
        raise BackupError(f"{file} cannot be restored. {error}") from error
    with closing(connect(path)) as copy:
        contents = contents_of(copy)
    assert contents is not None
    return PreparedBackup(path=path, backed_up=backed_up, contents=contents)


def put_in_place(engine: Engine, backup: PreparedBackup, kept: Path, tell: Tell) -> bool:
    """Replace the books by the backup in one transaction. The books as they were are in `kept` before that.

    Answer whether there were any. Whatever ends this in the middle, the books are whole: as before, or as in the
    backup.

    Raises:
        BackupError: it failed, and the books are as they were.
        BooksUnavailableError: the books cannot be read, or others wrote all the time.
    """
    try:
        with (
            closing(own_connection(engine)) as live,
            closing(own_connection(engine)) as reader,
            closing(connect(backup.path)) as source,
        ):
            require_room(kept.parent, size_of(reader) + backup.contents.bytes)

            def keep() -> None:
                _check_live(reader)  # again: a newer release may have migrated the books since
                if not is_empty(reader):
                    with new_file(kept) as path:
                        copy_books(reader, path, lambda _, done: tell("Keeping the books as they are", done))

            _replace(live, source, _Steps(keep, tell))
    except pysqlite3.dbapi2.Error as error:
        raise BackupError(f"The restore failed: {error}.") from error
    return kept.exists()


def _replace(live: Any, source: Any, steps: "_Steps") -> None:
    # SQLite's own waiting for the lock looks too rarely to get in between writers that do not pause.
    for setting in ("busy_timeout = 0", "synchronous = FULL"):
        live.execute(f"PRAGMA {setting}").close()
    # At least two steps: the first takes the lock, the last commits.
    pages = min(STEP_PAGES, size_of(source) // page_bytes(source) // 2)
    source.backup(live, pages=pages, progress=steps, sleep=LOCK_PAUSE_S)
    assert live.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    with suppress(pysqlite3.dbapi2.Error):  # it is done; else a service does this, and serves nobody meanwhile
        live.execute("PRAGMA wal_checkpoint(PASSIVE)").close()


class _Steps:
    """What is done between the steps of the restore.

    After the first one nobody else can write until the last: what is kept then lacks nothing.
    """

    def __init__(self, keep: Callable[[], None], tell: Tell) -> None:
        self._keep = keep
        self._tell = tell
        self._until_s = time.monotonic() + LOCK_TIMEOUT_S
        self._is_kept = False

    def __call__(self, status: int, left: int, all_: int) -> None:
        if status in (pysqlite3.dbapi2.SQLITE_BUSY, pysqlite3.dbapi2.SQLITE_LOCKED):
            if time.monotonic() >= self._until_s:
                raise BooksUnavailableError(f"Others kept the database locked for {LOCK_TIMEOUT_S} s.")
            return
        if not self._is_kept:
            self._keep()
            self._is_kept = True
        self._tell("Restoring", share(left, all_))


def _check_live(live: Any) -> None:
    """Refuse to replace what is not at the revision of this release, or no books at all."""
    try:
        revision, has_nothing = revision_of(live), is_empty(live)
    except pysqlite3.dbapi2.Error as error:
        raise BooksUnavailableError(f"The database failed: {error}.") from error
    if revision not in {None, HEAD}:
        raise BackupError(
            f"The books are at revision {revision}, this release works with {HEAD}. "
            "Bring them there first, with: tarazu db upgrade"
        )
    if revision is None and not has_nothing:
        raise BackupError("What is in place of the books is a database of something else, which stays as it is.")


def _open_backup(file: Path) -> Any:
    """Open a backup for reading, without leaving anything beside it, also where nothing can be written."""
    is_in_use = any(file.with_name(file.name + end).exists() for end in SIDE_FILES)
    return connect(file, "mode=ro", *(() if is_in_use else ("immutable=1",)))


def _migrate_and_audit(path: Path, backed_up: Contents, tell: Tell) -> None:
    engine = sqlite_engine(URL.create("sqlite", database=str(path)))
    try:
        if backed_up.revision != HEAD:
            from tarazu.store.migrate import upgrade  # noqa: PLC0415 - half a second that most restores do without

            tell("Migrating", None)
            upgrade(engine)
        report = audit(engine, overdue_before_ms=NO_DEADLINE_MS, tell=tell)
    finally:
        engine.dispose()
    if report.found:
        first = report.differences[0]
        raise BackupError(
            f"Its figures do not balance: {report.found:,} of them differ. The first: {first.figure} of account "
            f"{first.account_id} is {first.booked:,}, and {first.computed:,} by its rows."
        )
