"""Backups: one file with all of the books at one moment, made while others write them, or no file at all."""

import os
import shutil
from contextlib import ExitStack, closing
from pathlib import Path

import pysqlite3.dbapi2
import pytest

from tarazu.store.availability import BooksUnavailableError
from tarazu.store.backup import back_up
from tarazu.store.copies import MIB, BackupError, Contents
from tarazu.store.engine import open_engine
from tarazu.store.revision import HEAD
from tarazu.store.telling import tell_nobody
from tests.support.backups import dump_of, files_in, spoil
from tests.support.books import Books, charge, make_topup, sqlite_only
from tests.support.processes import no_room_on_disk
from tests.support.values import held, make_account, make_key

pytestmark = sqlite_only


@pytest.fixture
def books(books: Books) -> Books:
    """An account with a charged request and a hold, and a balance."""
    books.add(make_account(), make_key(), make_topup(50))
    books.run(charge(held(books.admit())))
    books.admit()
    return books


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """Name a file in a folder of its own."""
    folder = tmp_path / "backups"
    folder.mkdir()
    return folder / "copy.db"


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copy in many steps, as large books are."""
    monkeypatch.setattr("tarazu.store.copies.STEP_PAGES", 2)


def test_a_backup_has_all_of_the_books(books: Books, target: Path) -> None:
    """Every row of every table; what it holds is told."""
    contents = back_up(books.engine, target, replaces=False, tell=tell_nobody)
    assert dump_of(target) == books.dump()
    assert contents == Contents(revision=HEAD, accounts=1, requests=2, bytes=target.stat().st_size)


def test_any_name_will_do(books: Books, target: Path) -> None:
    """Also one with characters of its own meaning in addresses, or that is no Unicode text."""
    for name in ("what? #1 100%41.db", os.fsdecode(b"caf\xe9.db")):
        back_up(books.engine, target.with_name(name), replaces=False, tell=tell_nobody)
        assert dump_of(target.with_name(name)) == books.dump()


@pytest.mark.usefixtures("small_steps")
def test_a_backup_is_of_one_moment_and_keeps_no_writer_waiting(books: Books, target: Path) -> None:
    """Others commit between any two steps, without a wait; the copy has none of it, and never begins again."""
    before = books.dump()
    books.pragmas["busy_timeout"] = 0
    shares: list[float] = []

    def write(_act: str, share: float | None) -> None:
        if share is not None:
            shares.append(share)
            books.run(charge(held(books.admit())))

    back_up(books.engine, target, replaces=False, tell=write)
    assert len(shares) > 10
    assert shares == sorted(set(shares))
    assert shares[-1] == 1
    assert dump_of(target) == before
    assert len(books.dump()["requests"]) == 2 + len(shares)


def test_a_backup_needs_no_file_beside_it(books: Books, target: Path) -> None:
    """It is not in WAL mode: it can be read from a folder that nobody can write, and reading leaves nothing there."""
    back_up(books.engine, target, replaces=False, tell=tell_nobody)
    assert target.read_bytes()[18:20] == b"\x01\x01"  # the format's mark of a rollback journal
    dump_of(target)
    assert files_in(target.parent) == {"copy.db"}


def test_a_backup_can_be_read_by_its_owner_alone(books: Books, target: Path) -> None:
    """It holds people's addresses and replies, whatever mode other new files get."""
    before = os.umask(0)
    try:
        back_up(books.engine, target, replaces=False, tell=tell_nobody)
    finally:
        os.umask(before)
    assert target.stat().st_mode & 0o777 == 0o600


def test_a_file_that_is_there_is_not_replaced(books: Books, target: Path) -> None:
    """Unless that is asked for."""
    target.write_text("dear")
    with pytest.raises(BackupError, match="is there already; choose another name, or replace it with --force"):
        back_up(books.engine, target, replaces=False, tell=tell_nobody)
    assert target.read_text() == "dear"
    back_up(books.engine, target, replaces=True, tell=tell_nobody)
    assert dump_of(target) == books.dump()


def test_a_name_that_leads_nowhere_is_there_too(books: Books, target: Path) -> None:
    """A symbolic link is not replaced unasked, wherever it leads."""
    target.symlink_to("nowhere")
    with pytest.raises(BackupError, match="is there already"):
        back_up(books.engine, target, replaces=False, tell=tell_nobody)


@pytest.mark.parametrize("end", ["", "-wal", "-shm", "-journal"])
def test_the_books_are_no_place_for_their_backup(books: Books, end: str) -> None:
    """Neither the database nor what belongs to it is ever replaced, by whatever path it is named."""
    path = Path(f"{books.engine.url.database}{end}")
    named = path.parent / ".." / path.parent.name / path.name
    with pytest.raises(BackupError, match="is the database itself"):
        back_up(books.engine, named, replaces=True, tell=tell_nobody)
    books.assert_balanced()


@pytest.mark.parametrize("end", ["-wal", "-shm", "-journal"])
def test_a_name_in_use_is_refused(books: Books, target: Path, end: str) -> None:
    """What another database has left beside the name would be taken for a part of the copy."""
    Path(f"{target}{end}").touch()
    with pytest.raises(BackupError, match=rf"copy\.db{end} is there: a program has a database open there"):
        back_up(books.engine, target, replaces=True, tell=tell_nobody)
    assert files_in(target.parent) == {f"copy.db{end}"}


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("missing/copy.db", "cannot be written: No such file or directory"),
        ("file/copy.db", "cannot be written: Not a directory"),
        ("/sys/copy.db", "cannot be written: "),
        ("backups", "is a folder; name a file in it"),
    ],
)
def test_a_place_that_cannot_be_written_is_told(books: Books, target: Path, path: str, reason: str) -> None:
    """A folder that is missing, or is none, or takes no files."""
    (target.parent.parent / "file").touch()
    with pytest.raises(BackupError, match=reason):
        back_up(books.engine, target.parent.parent / path, replaces=True, tell=tell_nobody)


def test_a_disk_is_not_filled_up(books: Books, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The books may be on it too: what has no room is not begun, and the need is told."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(9 * MIB, 9 * MIB, 1_000))
    with pytest.raises(BackupError, match=r"There is no room: 0\.\d MiB are needed, 0\.0 MiB are free"):
        back_up(books.engine, target, replaces=False, tell=tell_nobody)
    assert files_in(target.parent) == set()


@pytest.mark.usefixtures("small_steps")
def test_nothing_is_left_of_a_backup_that_is_broken_off(books: Books, target: Path) -> None:
    """Ctrl-C in the middle; a file that was to be replaced is still the old one."""
    target.write_text("old")

    def interrupt(_act: str, share: float | None) -> None:
        if share is not None and share > 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        back_up(books.engine, target, replaces=True, tell=interrupt)
    assert files_in(target.parent) == {"copy.db"}
    assert target.read_text() == "old"
    books.run(charge(held(books.admit())))


@pytest.mark.usefixtures("small_steps")
def test_a_disk_that_is_full_all_the_same_leaves_nothing(books: Books, target: Path) -> None:
    """As when others fill it up meanwhile: it is told, nothing of the copy stays, and the books are unharmed."""
    target.write_text("old")
    with ExitStack() as stack:

        def fill(_act: str, share: float | None) -> None:
            if share is not None and share > 0.5:
                stack.enter_context(no_room_on_disk(os.getpid()))

        with pytest.raises(BackupError, match=r"The copy failed: (disk I/O error|database or disk is full)"):
            back_up(books.engine, target, replaces=True, tell=fill)
    assert (files_in(target.parent), target.read_text()) == ({"copy.db"}, "old")
    books.run(charge(held(books.admit())))


def test_damaged_books_make_no_backup(books: Books, target: Path) -> None:
    """The last good one is not replaced by a copy of what is broken."""
    books.engine.dispose()
    spoil(Path(str(books.engine.url.database)))
    target.write_text("good")
    with pytest.raises(BackupError, match="It is damaged: "):
        back_up(books.engine, target, replaces=True, tell=tell_nobody)
    assert target.read_text() == "good"


def test_books_of_another_revision_can_be_backed_up(books: Books, target: Path) -> None:
    """Before a migration is when a backup is wanted; nothing is migrated by it."""
    books.execute("UPDATE alembic_version SET version_num = 'another'")
    assert back_up(books.engine, target, replaces=False, tell=tell_nobody).revision == "another"
    assert books.rows("SELECT version_num FROM alembic_version") == [("another",)]


@pytest.mark.usefixtures("store")
def test_without_books_there_is_no_backup(target: Path) -> None:
    """A wrong path in the configuration is told, and no empty books are made there."""
    engine = open_engine(f"sqlite:///{target.parent}/other.db")
    with pytest.raises(BooksUnavailableError, match=r"There are no books at .*other\.db"):
        back_up(engine, target, replaces=False, tell=tell_nobody)
    assert files_in(target.parent) == set()


@pytest.mark.usefixtures("store")
def test_a_database_of_something_else_makes_no_backup(target: Path) -> None:
    """Nor do tables that are not Tarazu's."""
    other = target.parent / "other.db"
    with closing(pysqlite3.dbapi2.connect(other)) as connection:
        connection.execute("CREATE TABLE songs (title)")
    before = other.read_bytes()
    engine = open_engine(f"sqlite:///{other}")
    with pytest.raises(BooksUnavailableError, match=r"other\.db is a database of another program"):
        back_up(engine, target, replaces=False, tell=tell_nobody)
    engine.dispose()
    assert files_in(target.parent) == {"other.db"}
    assert other.read_bytes() == before
