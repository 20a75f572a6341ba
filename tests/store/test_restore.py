"""Restores: a backup takes the place of the books in one step, and only a good one does."""

import os
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from alembic.script import ScriptDirectory

from tarazu.store import migrate
from tarazu.store.availability import BooksUnavailableError
from tarazu.store.backup import back_up
from tarazu.store.copies import MIB, BackupError, folder_beside
from tarazu.store.engine import open_engine, transaction
from tarazu.store.operations import Sweep
from tarazu.store.restore import PreparedBackup, prepare, put_in_place
from tarazu.store.revision import HEAD, current_revision
from tarazu.store.telling import tell_nobody
from tests.support.backups import change, dump_of, files_in, spoil
from tests.support.books import Books, charge, make_topup, sqlite_only
from tests.support.processes import no_room_on_disk
from tests.support.values import held, make_account, make_key

pytestmark = sqlite_only

NEWER = "newer"
MIGRATION = """
revision, down_revision = "NEWER", "HEAD"

def upgrade():
    from alembic import op
    op.execute("UPDATE intake SET retry_after_s = 77")
"""
"""A migration after the newest one; its words in capitals are to be filled in."""


@pytest.fixture
def books(books: Books) -> Books:
    """An account with a charged request and a hold, and a balance."""
    books.add(make_account(), make_key(), make_topup(50))
    books.run(charge(held(books.admit())))
    books.admit()
    return books


@pytest.fixture
def file(books: Books, tmp_path: Path) -> Path:
    """Back the books up."""
    path = tmp_path / "backups" / "copy.db"
    path.parent.mkdir()
    back_up(books.engine, path, replaces=False, tell=tell_nobody)
    return path


@pytest.fixture
def kept(books: Books) -> Path:
    """Name the file for the books that are replaced."""
    return path_of(books).with_name("kept.db")


def path_of(books: Books) -> Path:
    """Tell where the books are."""
    return Path(str(books.engine.url.database))


def restore(
    books: Books,
    file: Path,
    kept: Path,
    *,
    tell: Callable[[str, float | None], None] = tell_nobody,
    before: Callable[[], None] = lambda: None,
) -> tuple[PreparedBackup, bool]:
    """Restore a backup; do what is to come `before` the books are replaced."""
    with folder_beside(path_of(books)) as folder:
        prepared = prepare(books.engine, file, folder, tell)
        before()
        return prepared, put_in_place(books.engine, prepared, kept, tell)


def test_the_books_are_those_of_the_backup(books: Books, file: Path, kept: Path) -> None:
    """Every row of every table, whatever has been done since; what was there before is kept, whole."""
    backed_up = books.dump()
    books.add(make_account(id="acc_2"), make_topup(7, account_id="acc_1"))
    books.run(charge(held(books.admit())))
    replaced = books.dump()
    prepared, had_books = restore(books, file, kept)
    assert had_books
    assert (prepared.contents.accounts, prepared.contents.requests) == (1, 2)
    assert books.dump() == dump_of(file) == backed_up
    assert dump_of(kept) == replaced
    assert kept.stat().st_mode & 0o777 == 0o600
    assert files_in(path_of(books).parent) <= {"tarazu.db", "tarazu.db-wal", "tarazu.db-shm", "kept.db", "backups"}


def test_larger_and_smaller_books_are_replaced(books: Books, file: Path, kept: Path) -> None:
    """The file of the books becomes as long as they are, either way."""
    backed_up = books.dump()
    books.multiply_holds(2_000, later_ms="number")
    books.engine.dispose()
    large = path_of(books).stat().st_size
    restore(books, file, kept)
    assert books.dump() == backed_up
    restore(books, kept, kept.with_name("other.db"))
    assert len(books.dump()["requests"]) == 2 + 2_000
    books.engine.dispose()
    assert path_of(books).stat().st_size == large


def test_connections_that_are_open_go_on_with_the_restored_books(books: Books, file: Path, kept: Path) -> None:
    """What another process has read and prepared before is read and prepared anew; the file is in WAL mode still."""
    other = Books(books.url)
    other.admit()
    figures = other.figures()
    restore(books, file, kept)
    assert other.figures() != figures
    held(other.admit())
    assert other.figures() == figures
    assert other.rows("PRAGMA journal_mode") == [("wal",)]
    assert other.rows("PRAGMA integrity_check") == [("ok",)]
    other.assert_balanced()
    other.engine.dispose()


def test_a_reader_sees_the_books_before_until_it_ends(books: Books, file: Path, kept: Path) -> None:
    """Nothing in between is seen, and no reader keeps a restore waiting."""
    books.add(make_account(id="acc_2"))
    other = books.open_engine({})
    with transaction(other, read_only=True) as connection:
        count = "SELECT count(*) FROM accounts"
        assert connection.exec_driver_sql(count).scalar_one() == 2
        restore(books, file, kept)
        assert connection.exec_driver_sql(count).scalar_one() == 2
    assert books.rows(count) == [(1,)]
    other.dispose()


def test_what_is_kept_has_the_last_word_before_the_restore(books: Books, file: Path, kept: Path) -> None:
    """Nobody can write any more once the copy of the present books begins, so it lacks nothing."""
    acts: list[str] = []
    other = Books(books.url)
    other.pragmas["busy_timeout"] = 0

    def write(act: str, share: float | None) -> None:
        if act in {"Keeping the books as they are", "Restoring"} and act not in acts:
            assert (act, share) != ("Restoring", 1), "all of it came in one step"
            acts.append(act)
            with pytest.raises(BooksUnavailableError, match="locked"):
                other.admit()

    restore(books, file, kept, tell=write, before=lambda: other.add(make_account(id="acc_late")))
    assert acts == ["Keeping the books as they are", "Restoring"]
    assert "acc_late" in {row[0] for row in dump_of(kept)["accounts"]}
    held(other.admit())
    other.engine.dispose()


@pytest.mark.parametrize("act", ["Keeping the books as they are", "Restoring"])
def test_a_restore_that_is_broken_off_changes_nothing(books: Books, file: Path, kept: Path, act: str) -> None:
    """Ctrl-C while the present books are kept, or while they are being replaced."""
    books.admit()
    before = books.dump()

    def interrupt(now: str, share: float | None) -> None:
        if now == act and (now, share) != ("Restoring", 1):  # that is after the commit
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        restore(books, file, kept, tell=interrupt)
    assert books.dump() == before
    assert books.rows("PRAGMA integrity_check") == [("ok",)]
    held(books.admit())


def test_a_disk_that_is_full_amidst_a_restore_changes_nothing(books: Books, file: Path, kept: Path) -> None:
    """As when others fill it up meanwhile: it is told, and the books are as before and can be written."""
    books.admit()
    before = books.dump()
    with ExitStack() as stack:

        def fill(act: str, share: float | None) -> None:
            if act == "Restoring" and share != 1:
                stack.enter_context(no_room_on_disk(os.getpid()))

        with pytest.raises(BackupError, match=r"The restore failed: (disk I/O error|database or disk is full)"):
            restore(books, file, kept, tell=fill)
    assert books.dump() == dump_of(kept) == before
    held(books.admit())


def test_a_restore_does_not_wait_for_ever(
    books: Books, file: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where another writes all the time it gives up, and nothing has changed."""
    monkeypatch.setattr("tarazu.store.restore.LOCK_TIMEOUT_S", 0)
    other = books.open_engine({})
    with (
        transaction(other),
        pytest.raises(BooksUnavailableError, match="Others kept the database locked for 0 s"),
    ):
        restore(books, file, kept)
    assert not kept.exists()
    other.dispose()


def test_holds_of_a_backup_are_swept_after_it(books: Books, file: Path, kept: Path) -> None:
    """They were running when it was made. Overdue by now they do not make it a bad one, and their credits come back."""
    hold = held(books.admit())
    used = books.figures()[0]
    restore(books, file, kept)
    assert books.run(charge(hold)) == [False]  # its row is not there
    books.clock.now_ms = hold.deadline_ms + 1
    assert books.run(Sweep()) == [1]
    assert books.figures()[0] == used - 2
    books.assert_balanced()


# What is no good backup.


def cut(file: Path) -> None:
    """Leave half of it."""
    with file.open("r+b") as opened:
        opened.truncate(file.stat().st_size // 2)


def cut_unevenly(file: Path) -> None:
    """Leave a part of a page at the end."""
    with file.open("r+b") as opened:
        opened.truncate(file.stat().st_size - 1_000)


def make_anew(file: Path, *statements: str) -> None:
    """Make another database in its place."""
    file.unlink()
    change(file, *statements)


REFUSED: dict[str, tuple[Callable[[Path], Any], str]] = {
    "not there": (Path.unlink, r"There is no file .*copy\.db"),
    "no database": (lambda file: file.write_text("No database. " * 500), "copy.db cannot be restored.*not a database"),
    "empty": (lambda file: file.write_bytes(b""), "holds no books of Tarazu"),
    "cut in half": (cut, "copy.db cannot be restored.*malformed"),
    "cut unevenly": (cut_unevenly, "copy.db cannot be restored.*(malformed|damaged)"),
    "spoilt": (spoil, "copy.db cannot be restored.*(malformed|damaged)"),
    "an orphan": (
        lambda file: change(file, "UPDATE topups SET account_id = 'acc_gone'"),
        "It is damaged: a row of topups belongs to one of accounts that is not there",
    ),
    "another application's": (
        lambda file: make_anew(file, "CREATE TABLE songs (title)"),
        "holds no books of Tarazu",
    ),
    "another application's, with Alembic": (
        lambda file: make_anew(
            file,
            "CREATE TABLE alembic_version (version_num)",
            f"INSERT INTO alembic_version VALUES ('{HEAD}')",  # noqa: S608 - no outsider's words
            "CREATE TABLE accounts (id)",
        ),
        "holds no books of Tarazu",
    ),
    "of a newer release": (
        lambda file: change(file, "UPDATE alembic_version SET version_num = '9999'"),
        "revision 9999, which this release does not know",
    ),
    "out of balance": (
        lambda file: change(file, "UPDATE accounts SET balance = 9"),
        r"do not balance: 1 of them differ. The first: balance of account acc_1 is 9, and 50 by its rows",
    ),
}


@pytest.mark.parametrize(("make", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_good_backup_is_refused(
    books: Books, file: Path, kept: Path, make: Callable[[Path], Any], reason: str
) -> None:
    """With its name and a reason; the books, and the folder that they are in, are as before."""
    make(file)
    before, names = books.dump(), files_in(kept.parent)
    with pytest.raises(BackupError, match=reason):
        restore(books, file, kept)
    assert books.dump() == before
    assert files_in(kept.parent) == names


def test_the_books_are_not_their_own_backup(books: Books, file: Path, kept: Path) -> None:
    """By whatever path they are named."""
    file.unlink()
    file.symlink_to(path_of(books))
    with pytest.raises(BackupError, match=r"copy\.db is the database itself"):
        restore(books, file, kept)


def test_a_restore_does_not_fill_the_disk_up(
    books: Books, file: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What has no room beside the books is not begun."""
    usage = shutil._ntuple_diskusage(9 * MIB, 9 * MIB, 150_000)
    before = books.dump()
    with pytest.raises(BackupError, match="There is no room"):
        restore(books, file, kept, before=lambda: monkeypatch.setattr(shutil, "disk_usage", lambda _: usage))
    assert (books.dump(), kept.exists()) == (before, False)


# What is a good one all the same.


def test_an_older_backup_is_migrated(
    books: Books, file: Path, kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The services find the revision that they work with, and the file stays at its own."""
    scripts = tmp_path / "migrations"
    shutil.copytree(migrate.SCRIPTS, scripts)
    (scripts / "versions" / "newer.py").write_text(MIGRATION.replace("NEWER", NEWER).replace("HEAD", HEAD))
    monkeypatch.setattr(migrate, "SCRIPTS", scripts)
    for module in ("migrate", "restore"):
        monkeypatch.setattr(f"tarazu.store.{module}.HEAD", NEWER)
    assert ScriptDirectory(str(scripts)).get_current_head() == NEWER
    migrate.upgrade(books.engine)
    content = file.read_bytes()
    prepared, _ = restore(books, file, kept)
    assert (prepared.backed_up.revision, prepared.contents.revision) == (HEAD, NEWER)
    assert current_revision(books.engine) == NEWER
    assert books.rows("SELECT retry_after_s FROM intake") == [(77,)]
    assert file.read_bytes() == content


def test_a_copy_in_wal_mode_is_restored_and_stays_as_it_is(books: Books, file: Path, kept: Path) -> None:
    """As of a service that was stopped; nothing is written to it or left beside it."""
    change(file, "PRAGMA journal_mode = WAL")
    content, backed_up = file.read_bytes(), dump_of(file)
    for end in ("-wal", "-shm"):
        Path(f"{file}{end}").unlink()
    books.add(make_account(id="acc_2"))
    restore(books, file, kept)
    assert books.dump() == backed_up
    assert (file.read_bytes(), files_in(file.parent)) == (content, {"copy.db"})


def test_a_copy_with_its_log_is_restored_whole(books: Books, file: Path, kept: Path) -> None:
    """What stands in the write-ahead log beside a copied database belongs to it."""
    with transaction(books.engine) as connection:
        connection.exec_driver_sql("UPDATE intake SET retry_after_s = 33")
    for end in ("", "-wal"):
        shutil.copy(f"{path_of(books)}{end}", f"{file}{end}")
    books.execute("UPDATE intake SET retry_after_s = 44")
    restore(books, file, kept)
    assert books.rows("SELECT retry_after_s FROM intake") == [(33,)]


def test_a_backup_with_pages_of_another_size_is_restored(books: Books, file: Path, kept: Path) -> None:
    """As after a repair with other tools; the books keep their own."""
    change(file, "PRAGMA page_size = 16384", "VACUUM")
    books.add(make_account(id="acc_2"))
    restore(books, file, kept)
    assert books.dump() == dump_of(file)
    assert books.rows("PRAGMA page_size") == [(4_096,)]


# What is in place of the books.


def test_books_that_are_lost_are_restored(books: Books, file: Path, kept: Path) -> None:
    """Where there is no file at all there is nothing to keep."""
    backed_up = dump_of(file)
    lost = Books(f"sqlite:///{path_of(books).with_name('lost.db')}")
    _, had_books = restore(lost, file, kept)
    assert (had_books, kept.exists()) == (False, False)
    assert lost.dump() == backed_up
    lost.engine.dispose()


def test_damaged_books_are_replaced(books: Books, file: Path, kept: Path) -> None:
    """When a backup is needed most; what can be read of them is kept, page by page."""
    backed_up = dump_of(file)
    books.engine.dispose()
    spoil(path_of(books))
    restore(books, file, kept)
    assert books.dump() == backed_up
    assert kept.exists()


def test_books_whose_very_beginning_is_damaged_are_told_of(books: Books, file: Path, kept: Path) -> None:
    """What SQLite cannot even begin to read cannot be replaced in place."""
    books.engine.dispose()
    with path_of(books).open("r+b") as opened:
        opened.seek(100)
        opened.write(b"\xff" * 1_000)
    with pytest.raises(BooksUnavailableError, match="malformed"):
        restore(books, file, kept)


def test_books_of_another_revision_are_not_replaced(books: Books, file: Path, kept: Path) -> None:
    """The services that work on them may be of another release."""
    books.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(BackupError, match=r"The books are at revision 9999.*first, with: tarazu db upgrade"):
        restore(books, file, kept)


def test_books_that_were_migrated_meanwhile_are_not_replaced(books: Books, file: Path, kept: Path) -> None:
    """By a newer release, while somebody thought about the question: it is looked at again under the lock."""
    migrated = partial(books.execute, "UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(BackupError, match="The books are at revision 9999"):
        restore(books, file, kept, before=migrated)
    assert books.rows("SELECT version_num FROM alembic_version") == [("9999",)]
    assert not kept.exists()


def test_a_database_of_something_else_is_not_replaced(books: Books, file: Path, kept: Path) -> None:
    """A wrong path in the configuration costs nobody a database."""
    other = path_of(books).with_name("other.db")
    change(other, "CREATE TABLE songs (title)")
    content = other.read_bytes()
    engine = open_engine(f"sqlite:///{other}")
    with pytest.raises(BackupError, match="is a database of something else"):
        prepare(engine, file, kept.parent, tell_nobody)
    engine.dispose()
    assert other.read_bytes()[100:] == content[100:]  # the first 100 bytes tell the journal's mode
