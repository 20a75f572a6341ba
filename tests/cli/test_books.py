"""Commands and the books: which make them, and what the others say of books that are not there, or not theirs."""

import ctypes
import os
import shlex
import stat
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pysqlite3.dbapi2
import pytest
from structlog.testing import capture_logs

from tarazu.service.books import make_books, open_books
from tarazu.store.engine import transaction
from tarazu.store.revision import HEAD
from tests.cli.commands import COMMAND, Commands, clean_environ
from tests.cli.every_command import MAKING, WITH_BOOKS, WITHOUT_BOOKS, every_command
from tests.support.backups import change, dump_of
from tests.support.missing import cannot_try
from tests.support.patience import PATIENCE_S
from tests.support.rows import rows

NOBODY = 65_534


@pytest.fixture
def books(tarazu: Commands, folder: Path) -> Path:
    """Open an account in the books, and answer with their file."""
    tarazu.account()
    return folder / "tarazu.db"


def test_every_command_is_tried() -> None:
    """The tables of this module know what each command has to do with the books."""
    assert every_command() == {*WITH_BOOKS, *MAKING, *WITHOUT_BOOKS}


def _refusals(tarazu: Commands, *, of_another_release: bool = False) -> Iterator[tuple[str, str]]:
    """Run each command that makes no books, where it cannot be done; answer with the problem and what is said below.

    A backup is made of books of any release.
    """
    for path, arguments in WITH_BOOKS.items():
        if of_another_release and path == ("db", "backup"):
            continue
        ran = tarazu(*path, *arguments)
        assert (ran.status, ran.out) == (1, ""), path
        problem, place = ran.err.splitlines()
        yield problem, place


SHUT = "shut/tarazu.db"
LONG_NAME = "a" * 300
UNUSABLE = {
    SHUT: "Permission denied",
    LONG_NAME: "File name too long",
    "loop": "Too many levels of symbolic links",
    "file/tarazu.db": "Not a directory",
    "folder": "it is a folder",
    "pipe": "it is no regular file",
    "/dev/null": "it is no regular file",
}


@pytest.fixture
def unusable(tarazu: Commands, folder: Path) -> Commands:
    """Make the places of UNUSABLE."""
    (folder / "loop").symlink_to("loop")
    (folder / "file").touch()
    (folder / "folder").mkdir()
    os.mkfifo(folder / "pipe")
    (folder / "shut").mkdir(0)
    folder.chmod(0o755)
    return tarazu


@contextmanager
def _as_nobody() -> Iterator[None]:
    """Have the system ask what nobody may do with files, in this thread, where it is root's and may do all."""
    if os.geteuid():
        yield
        return
    see_files_as = ctypes.CDLL(None).setfsuid
    see_files_as(NOBODY)
    try:
        yield
    finally:
        see_files_as(0)


@pytest.mark.parametrize("place", UNUSABLE)
def test_a_place_where_no_books_can_be_is_one_line(
    unusable: Commands, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """For each command that opens or makes books, with the place and the system's reason; the check warns of it."""
    tarazu = unusable
    making = {("serve",): (), ("db", "upgrade"): (), ("db", "restore"): ("tarazu.toml", "--yes")}
    assert making.keys() == MAKING

    def try_all(place: str) -> None:
        monkeypatch.setenv("TARAZU_DATABASE_URL", f"sqlite:///{place}")
        expected = f"The books at {Path(place).absolute()} cannot be opened: {UNUSABLE[place]}."
        for path, arguments in {**WITH_BOOKS, **making}.items():
            ran = tarazu(*path, *arguments)
            assert (ran.status, ran.err.splitlines()[0]) == (1, f"tarazu: {expected}"), path
        assert tarazu.json("check")["warnings"] == [expected]
        checked = tarazu("check")
        assert (checked.status, checked.err) == (0, "")
        assert checked.out.endswith(f"\nWarning: {expected}\n")

    if place != SHUT:
        try_all(place)
        return
    try_all("folder")  # loads what nobody may not read
    with _as_nobody():
        try_all(place)


def test_a_folder_that_is_missing_is_named(tarazu: Commands, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No command makes it: the advice would fail else."""
    monkeypatch.setenv("TARAZU_DATABASE_URL", "sqlite:///no/such%20place/tarazu.db")
    place = folder / "no" / "such place"
    for problem, _ in _refusals(tarazu):
        assert problem == (
            f"tarazu: There are no books at {place}/tarazu.db, nor a folder {place}. "
            "Make the folder first. Make them with: tarazu db upgrade"
        )
    expected = f"The books cannot be made at {place}/tarazu.db: there is no folder {place}."
    for command in (("serve",), ("db", "upgrade"), ("db", "restore", "tarazu.db", "--yes")):
        assert tarazu(*command).err.splitlines()[0] == f"tarazu: {expected}"
    assert tarazu.json("check")["warnings"] == [expected]
    place.mkdir(parents=True)
    assert tarazu.json("check")["warnings"] == []


@pytest.mark.parametrize("content", [b"no database" * 100, b"SQLite format 3\0" + b"x" * 4_080])
def test_what_is_no_database_is_told_by_the_check_too(tarazu: Commands, folder: Path, content: bytes) -> None:
    """In the words of the service that would not start on it."""
    for file in folder.glob("tarazu.db*"):
        file.unlink()
    (folder / "tarazu.db").write_bytes(content)
    (folder / "tarazu.db").chmod(0o600)
    problem = tarazu("serve").err.splitlines()[0].removeprefix("tarazu: ")
    assert problem.startswith("The database failed: ")
    assert tarazu.json("check")["warnings"] == [problem]


def test_a_url_with_a_nul_is_refused(tarazu: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file has such a name; the URL's own rule says so, in every command."""
    monkeypatch.setenv("TARAZU_DATABASE_URL", "sqlite:///a%00b")
    for path, arguments in {**WITH_BOOKS, ("check",): (), ("serve",): ()}.items():
        ran = tarazu(*path, *arguments)
        assert ran.status == 1, path
        assert ran.err.startswith('tarazu: TARAZU_DATABASE_URL: expected "sqlite:///PATH"'), path


@rows("decisions.added_by_this_project.14")
def test_no_other_command_makes_books(tarazu: Commands, folder: Path) -> None:
    """Where there are none each says so with their place and the next step, and leaves the folder as it is."""
    (folder / "tarazu.db").unlink()
    for problem, place in _refusals(tarazu):
        assert problem.startswith(
            f"tarazu: There are no books at {folder}/tarazu.db. Make them with: tarazu db upgrade"
        )
        assert place == "The books are tarazu.db in this folder, since tarazu.toml has no [database] url."
    assert [path.name for path in folder.iterdir()] == ["tarazu.toml"]


def test_books_of_an_older_release_are_migrated_by_db_upgrade_alone(tarazu: Commands, books: Path) -> None:
    """A release that runs on them goes on; what to do is said, and nothing is changed."""
    change(books, "UPDATE alembic_version SET version_num = '0003'")
    before = dump_of(books)
    for problem, _ in _refusals(tarazu, of_another_release=True):
        assert "revision 0003, of an older release" in problem
        assert problem.endswith(f"works with {HEAD}. Migrate the books with: tarazu db upgrade")
    assert dump_of(books) == before


def test_books_of_a_newer_release_are_left_alone(tarazu: Commands, books: Path) -> None:
    """The message says which revision they are at, and to use the release that has written them."""
    change(books, "UPDATE alembic_version SET version_num = '9999'")
    before = dump_of(books)
    for problem, _ in _refusals(tarazu, of_another_release=True):
        assert "revision 9999, which this release does not know. Run the newer release" in problem
    assert dump_of(books) == before


def test_a_database_of_another_program_is_refused_by_name(tarazu: Commands, folder: Path) -> None:
    """By every command, those that make books too: no table is made in it, and its mode stays."""
    file = folder / "tarazu.db"
    file.unlink()
    with closing(pysqlite3.dbapi2.connect(file)) as connection:
        connection.execute("CREATE TABLE songs (title)")
    before = file.read_bytes()
    for problem, _ in _refusals(tarazu):
        assert "another program" in problem
        assert str(file) in problem
    for command in (("serve",), ("db", "upgrade")):
        ran = tarazu(*command)
        assert (ran.status, ran.out) == (1, "")
        assert ran.err.startswith(f"tarazu: {file} is a database of another program, which stays as it is.\n")
    assert file.read_bytes() == before
    assert {path.name for path in folder.iterdir()} == {"tarazu.toml", "tarazu.db"}


def test_the_variable_is_named_where_it_is_in_force(
    tarazu: Commands, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error of the books says what has named them: the file, or the environment above it."""
    monkeypatch.setenv("TARAZU_DATABASE_URL", f"sqlite:///{folder}/elsewhere.db")
    ran = tarazu("account", "list")
    problem, place = ran.err.splitlines()
    assert problem.startswith(f"tarazu: There are no books at {folder}/elsewhere.db.")
    assert place == "The books are where the environment variable TARAZU_DATABASE_URL says."


@pytest.mark.parametrize("made_by", ["serve", "db upgrade", "db restore"])
def test_books_are_made_for_their_owner_alone(tarazu: Commands, folder: Path, made_by: str) -> None:
    """With the files beside them, whatever the umask lets others do: they hold digests, addresses and replies."""
    file = folder / "tarazu.db"
    assert tarazu("db", "backup", "backup.db").status == 0
    for old in folder.glob("tarazu.db*"):
        old.unlink()
    umask = os.umask(0)
    try:
        if made_by == "serve":
            make_books(f"sqlite:///{file}")
        else:
            arguments = ("backup.db", "--yes") if made_by == "db restore" else ()
            assert tarazu(*made_by.split(), *arguments).status == 0
        engine = open_books(f"sqlite:///{file}")
        with transaction(engine) as connection:
            connection.exec_driver_sql("UPDATE intake SET retry_after_s = retry_after_s + 1")
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.glob("tarazu.db*")}
        engine.dispose()
    finally:
        os.umask(umask)
    assert modes == {"tarazu.db": 0o600, "tarazu.db-wal": 0o600, "tarazu.db-shm": 0o600}


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o602])
def test_books_that_others_can_read_are_told(tarazu: Commands, books: Path, mode: int) -> None:
    """By `check` and at the start, with the line that keeps others out; the rest goes on as before."""
    assert tarazu.json("check")["warnings"] == []
    books.chmod(mode)
    line = f"chmod 600 {books}"
    with capture_logs() as logged:
        make_books(f"sqlite:///{books}")
    assert [entry["event"] for entry in logged] == ["books_open_to_others"]
    assert line in logged[0]["advice"]
    (warning,) = tarazu.json("check")["warnings"]
    assert warning == "Other users can read the books. Keep them out with: chmod 600 tarazu.db"
    checked = tarazu("check")
    assert (checked.status, f"Warning: {warning}\n" in checked.out) == (0, True)
    subprocess.run(shlex.split(warning.partition(": ")[2]), check=True)
    assert tarazu.json("check")["warnings"] == []


def test_books_on_a_read_only_file_system_are_read(
    tarazu: Commands, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Where one wants a backup most: listing, audit and a backup to another disk work; what would write is told so."""
    tarazu.account()
    target = tmp_path_factory.mktemp("elsewhere") / "backup.db"
    script = f"""
        mount --bind {folder} {folder} && mount -o remount,ro,bind {folder} && cd {folder} || exit 77
        for arguments in "account list" "audit" "db backup {target}" "account create --name B" "intake stop"; do
            {COMMAND} $arguments >/dev/null 2>"{target.parent}/err"
            echo "$?" $(cat "{target.parent}/err")
        done
    """
    ran = subprocess.run(
        ["unshare", "--mount", "--map-root-user", "/bin/sh", "-c", script],
        capture_output=True,
        text=True,
        env=clean_environ(),
        timeout=PATIENCE_S,
        check=False,
    )
    if ran.returncode in {1, 77}:
        cannot_try("A mount of one's own is needed: unshare of util-linux, and user namespaces that are not forbidden.")
    refused = "1 tarazu: The database can be read here, but not written."
    place = "The books are tarazu.db in this folder, since tarazu.toml has no [database] url."
    assert ran.stdout.splitlines() == ["0", "0", "0", f"{refused} {place}", f"{refused} {place}"]
    assert target.is_file()
