"""`tarazu db`: upgrade, backup and restore."""

import os
import pty
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tarazu.store.revision import HEAD
from tests.cli.commands import COMMAND, Commands, Ran, clean_environ
from tests.support.backups import change, dump_of, files_in
from tests.support.patience import PATIENCE_S

HINTS = """\
Keys that were revoked, accounts that were blocked and credits that were added since the backup are as
they were then. Look them through, and add what was paid, by the same references.
Holds of the backup are swept when their time is over. Then check: tarazu audit
"""


@pytest.fixture
def books(folder: Path) -> Path:
    """Name the file of the books."""
    return folder / "tarazu.db"


@pytest.fixture
def backup(tarazu: Commands, folder: Path) -> Path:
    """Back up books with one account, and open another one afterwards."""
    tarazu.account()
    assert tarazu("db", "backup", "backup.db").status == 0
    tarazu.account()
    return folder / "backup.db"


@contextmanager
def keyboard(line: str) -> Iterator[int]:
    """Have a terminal, at which somebody types a line."""
    master, slave = pty.openpty()
    try:
        os.write(master, line.encode())
        yield slave
    finally:
        os.close(slave)
        os.close(master)


def at_terminal(folder: Path, line: str, *arguments: str) -> Ran:
    """Run a command for somebody who types a line when asked."""
    with keyboard(line) as stdin:
        ran = subprocess.run(
            [COMMAND, *arguments],
            cwd=folder,
            env=clean_environ(),
            stdin=stdin,
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,
        )
    return Ran(ran.returncode, ran.stdout.decode(), ran.stderr.decode())


# upgrade


def test_upgrade_makes_the_books_and_then_finds_them_made(tarazu: Commands, books: Path) -> None:
    """`db upgrade` prints the revision before and after; the second time there is nothing to do."""
    books.unlink()
    first = tarazu.json("db", "upgrade")
    assert first["before"] is None
    assert tarazu.json("db", "upgrade") == {"before": first["after"], "after": first["after"]}
    assert tarazu("db", "upgrade").out == f"The database is at revision {first['after']} already.\n"


def test_upgrade_refuses_books_of_a_newer_release(tarazu: Commands, books: Path) -> None:
    """A revision that this release does not know is left alone, with exit status 1."""
    tarazu("db", "upgrade")
    change(books, "UPDATE alembic_version SET version_num = '9999'")
    ran = tarazu("db", "upgrade")
    assert (ran.status, ran.out) == (1, "")
    assert ran.err.startswith("tarazu: The database is at revision 9999, which this release does not know.")


# backup


def test_backup_says_what_it_holds(tarazu: Commands, books: Path) -> None:
    """`db backup` copies the books and tells their revision, how much is in them, and the file's size."""
    tarazu.account()
    ran = tarazu("db", "backup", "backup.db")
    assert (ran.status, ran.err) == (0, "")
    size = f"{books.with_name('backup.db').stat().st_size / 2**20:.1f} MiB"
    assert ran.out == f"backup.db has the books at revision {HEAD}: 1 account and 0 requests, in {size}.\n"
    assert dump_of(books.with_name("backup.db")) == dump_of(books)


def test_backup_prints_json(tarazu: Commands, folder: Path) -> None:
    """`db backup --json` prints one document."""
    tarazu.account()
    assert tarazu.json("db", "backup", "backup.db") == {
        "file": "backup.db",
        "revision": HEAD,
        "accounts": 1,
        "requests": 0,
        "bytes": (folder / "backup.db").stat().st_size,
    }


def test_backup_replaces_a_file_only_with_force(tarazu: Commands, backup: Path, books: Path) -> None:
    """Otherwise it is refused, with status 1 and what to do."""
    before = backup.read_bytes()
    ran = tarazu("db", "backup", "backup.db")
    assert (ran.status, ran.out) == (1, "")
    assert ran.err == (
        "tarazu: backup.db is there already; choose another name, or replace it with --force.\n"
        "The books are as they were.\n"
    )
    assert backup.read_bytes() == before
    assert tarazu("db", "backup", "backup.db", "--force").status == 0
    assert dump_of(backup) == dump_of(books)


def test_backup_makes_no_books(tarazu: Commands, folder: Path) -> None:
    """A wrong path in the configuration is told, instead of backing up empty books."""
    (folder / "tarazu.db").unlink()
    ran = tarazu("db", "backup", "backup.db")
    assert (ran.status, ran.out) == (1, "")
    assert ran.err.startswith(f"tarazu: There are no books at {folder}/tarazu.db.")
    assert files_in(folder) == {"tarazu.toml"}


def test_backup_migrates_nothing(tarazu: Commands, backup: Path, books: Path) -> None:
    """It is wanted before an upgrade most of all: the copy is at the revision that the books are at."""
    change(books, "UPDATE alembic_version SET version_num = 'another'")
    backup.unlink()
    assert tarazu.json("db", "backup", "backup.db")["revision"] == "another"


@pytest.mark.parametrize("command", [("backup", "b.db"), ("restore", "b.db", "--yes")])
def test_books_in_postgresql_are_left_to_its_own_tools(
    tarazu: Commands, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    """It is said which, without a connection to it."""
    monkeypatch.setenv("TARAZU_DATABASE_URL", "postgresql://tarazu@localhost:1/tarazu")
    ran = tarazu("db", *command)
    assert (ran.status, ran.out) == (1, "")
    assert ran.err == (
        "tarazu: The books are in PostgreSQL, which has tools of its own for this.\n"
        "Use pg_dump and pg_restore, as docs/postgresql.md tells.\n"
    )


# restore


def test_restore_says_what_it_did(tarazu: Commands, backup: Path, books: Path) -> None:
    """`db restore` replaces the books, tells where those before are kept, and what to look through."""
    before = dump_of(books)
    ran = tarazu("db", "restore", "backup.db", "--yes")
    assert (ran.status, ran.err) == (0, "")
    first, second, *hints = ran.out.splitlines(keepends=True)
    assert first == f"The books are those of backup.db: 1 account and 0 requests at revision {HEAD}.\n"
    found = re.fullmatch(r"The books as they were are in (tarazu\.before-restore-\d{8}T\d{6}\.\d{3}Z\.db)\n", second)
    assert found is not None
    assert dump_of(books.with_name(found[1])) == before
    assert "".join(hints) == HINTS
    assert dump_of(books) == dump_of(backup)
    assert tarazu("audit").status == 0


def test_restore_prints_json(tarazu: Commands, backup: Path) -> None:
    """`db restore --json` prints one document."""
    restored = tarazu.json("db", "restore", str(backup), "--yes")
    kept = restored.pop("kept")
    assert restored == {"file": str(backup), "before": HEAD, "after": HEAD, "accounts": 1, "requests": 0}
    assert Path(kept).is_file()


def test_restore_into_nothing_keeps_nothing(tarazu: Commands, backup: Path, books: Path) -> None:
    """On a new machine, or when the file is lost."""
    books.unlink()
    ran = tarazu("db", "restore", "backup.db", "--yes")
    assert (ran.status, len(ran.out.splitlines())) == (0, 2)
    assert "as they were are in" not in ran.out
    assert dump_of(books) == dump_of(backup)


@pytest.mark.parametrize("typed", ["y\n", "Y\n"])
def test_restore_asks_at_a_terminal(backup: Path, books: Path, typed: str) -> None:
    """It tells what would replace which books, on standard error; yes replaces them."""
    ran = at_terminal(books.parent, typed, "db", "restore", "backup.db", "--json")
    assert ran.status == 0
    question = (
        f"backup.db has 1 account and 0 requests at revision {HEAD}. Replace the books in tarazu.db by it? [y/n] (n):"
    )
    assert question in " ".join(ran.err.split())
    assert ran.json["accounts"] == 1
    assert dump_of(books) == dump_of(backup)


@pytest.mark.usefixtures("backup")
@pytest.mark.parametrize("typed", ["n\n", "\n", "\x04"])
def test_restore_takes_anything_else_for_no(books: Path, typed: str) -> None:
    """No, nothing and Ctrl-D leave the books as they are, with nothing beside them; status 1."""
    before = dump_of(books)
    ran = at_terminal(books.parent, typed, "db", "restore", "backup.db")
    assert (ran.status, ran.out) == (1, "")
    assert ran.err.endswith("tarazu: Nothing was replaced.\n")
    assert dump_of(books) == before
    assert files_in(books.parent) >= {"tarazu.db", "backup.db"}
    assert not [name for name in files_in(books.parent) if "restore" in name or name.startswith(".")]


def test_restore_without_a_terminal_needs_a_yes(
    tarazu: Commands, backup: Path, books: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script says so itself; status 2."""
    before = dump_of(books)
    with Path(os.devnull).open() as nobody:
        monkeypatch.setattr("sys.stdin", nobody)
        ran = tarazu("db", "restore", backup.name)
    assert (ran.status, ran.out) == (2, "")
    assert ran.err == (
        "tarazu: There is no terminal to ask whether the books are to be replaced.\nSay so with --yes.\n"
    )
    assert dump_of(books) == before


def test_restore_refuses_what_is_no_backup(tarazu: Commands, backup: Path, books: Path) -> None:
    """With the file, the reason and status 1."""
    before = dump_of(books)
    backup.write_text("No database. " * 500)
    ran = tarazu("db", "restore", "backup.db", "--yes")
    assert (ran.status, ran.out) == (1, "")
    assert ran.err == (
        "tarazu: backup.db cannot be restored. The copy failed: file is not a database.\nThe books are as they were.\n"
    )
    assert dump_of(books) == before
