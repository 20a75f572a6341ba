"""Back up books that are in SQLite, while services write them: all of one state in one file, or no file at all."""

import os
from contextlib import closing
from pathlib import Path

from sqlalchemy import Engine

from tarazu.store.books_path import looked_at
from tarazu.store.copies import (
    BackupError,
    Contents,
    check_intact,
    contents_of,
    copy_books,
    new_file,
    own_connection,
)
from tarazu.store.revision import no_books, of_another_program
from tarazu.store.sqlite import SIDE_FILES, books_file, connect
from tarazu.store.telling import Tell


def back_up(engine: Engine, target: Path, *, replaces: bool, tell: Tell) -> Contents:
    """Copy the books as they are at one moment to `target`, and tell what the copy holds.

    Services on the books are not kept from anything. The file is there when it is whole, checked and on disk, or not at
    all. It needs no other file beside it. One that is there already is refused unless the copy `replaces` it.

    Raises:
        BackupError: the target cannot be written, or the books are damaged.
        BooksUnavailableError: there are no books, or they cannot be read.
    """
    books = books_file(engine)
    if looked_at(books) is None:
        raise no_books(engine)
    _check_target(target, books, replaces=replaces)
    with closing(own_connection(engine)) as source, new_file(target) as path:
        copy_books(source, path, tell)
        with closing(connect(path)) as copy:
            check_intact(copy, tell)
            contents = contents_of(copy)
        if contents is None:
            raise of_another_program(engine)
    return contents


def _check_target(target: Path, books: Path, *, replaces: bool) -> None:
    if target.is_dir():
        raise BackupError(f"{target} is a folder; name a file in it.")
    if target.resolve() in {books.resolve().with_name(books.resolve().name + end) for end in ("", *SIDE_FILES)}:
        raise BackupError(f"{target} is the database itself; choose another name.")
    if not replaces and os.path.lexists(target):
        raise BackupError(f"{target} is there already; choose another name, or replace it with --force.")
    for end in SIDE_FILES:
        # SQLite would take it for a part of the new file.
        if os.path.lexists(f"{target}{end}"):
            raise BackupError(f"{target}{end} is there: a program has a database open there; choose another name.")
