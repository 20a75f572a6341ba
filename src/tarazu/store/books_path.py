"""The file of books in SQLite, as the file system sees it: nothing is opened, and no database library is needed."""

import os
import stat
from pathlib import Path
from urllib.parse import unquote

from tarazu.store.availability import BooksUnavailableError

SQLITE = "sqlite:///"


def sqlite_path(database_url: str) -> Path | None:
    """Tell the file that a URL names, whose percent forms are undone; None for books that are in no file."""
    is_file = database_url.startswith(SQLITE)
    return Path(unquote(database_url.removeprefix(SQLITE))) if is_file else None


def looked_at(path: Path) -> os.stat_result | None:
    """Look at the books' file, or one beside it; None where there is none.

    Raises:
        BooksUnavailableError: it cannot be looked at, or is there and no file.
    """
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise cannot_be_opened(path, error.strerror) from None
    if not stat.S_ISREG(found.st_mode):
        raise cannot_be_opened(path, "it is a folder" if stat.S_ISDIR(found.st_mode) else "it is no regular file")
    return found


def missing_folder(path: Path) -> Path | None:
    """Tell which folder is to be made before books can be; None where it is there."""
    folder = path.absolute().parent
    return None if folder.is_dir() else folder


def cannot_be_opened(path: Path, reason: str | None) -> BooksUnavailableError:
    """Say that there is something at the books' place, and why it cannot be used."""
    return BooksUnavailableError(f"The books at {path.absolute()} cannot be opened: {reason}.")


def cannot_be_made(path: Path, reason: str | None) -> BooksUnavailableError:
    """Say that there are no books, and why none can be made there."""
    return BooksUnavailableError(f"The books cannot be made at {path.absolute()}: {reason}.")


def require_makeable(path: Path) -> None:
    """See that books can be made where there are none, without making them.

    Raises:
        BooksUnavailableError: the folder is not there, or takes no file.
    """
    if (folder := missing_folder(path)) is not None:
        raise cannot_be_made(path, f"there is no folder {folder}")
    if not os.access(path.absolute().parent, os.W_OK | os.X_OK):
        raise cannot_be_made(path, f"no file can be made in {path.absolute().parent}")
