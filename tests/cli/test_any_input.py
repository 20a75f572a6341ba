"""Whatever a person types, writes into the file or sets: a command ends in a result or in words, in no traceback."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tarazu.cli.running import run
from tarazu.service import serving
from tarazu.service.serving import ServingError
from tests.cli.commands import CATALOGUE, Commands
from tests.cli.every_command import WITH_BOOKS, every_command

QUICK = sorted(
    every_command() - {("serve",), ("chat",), ("backend", "test"), ("drain",), ("reload",), ("db", "restore")}
)
"""Commands that wait for nobody."""

ODD = st.sampled_from(
    [
        "",
        " ",
        "-",
        "--",
        "-1",
        "--json",
        "--help",
        "--config",
        "--expires",
        "0d",
        "99999999999d",
        "1e3",
        "9" * 30,
        "acc_x",
        "\u200f",
        "\x1b[31m",
        "\ud8ff",
        "/",
        "/dev/null",
        "/proc/self/mem",
        "no/such/place",
        "[x]",
        "{0}",
        "%s",
        "é\u0301",
        "2026-13",
        "a" * 300,
        "x\ny",
    ]
) | st.text(max_size=8).filter(lambda text: "\x00" not in text)
HOSTS = ODD | st.sampled_from(["localhost", "127.1", "127.0.0.1:80", "::1", "::1%lo", "0.0.0.0", "a..b", "1.2.3.4.5"])  # noqa: S104
DATABASES = st.builds(
    "{}{}".format,
    st.sampled_from(["", "sqlite:///", "sqlite://", "postgresql://", "postgresql://u:p@", "mysql://", "sqlite:////"]),
    ODD
    | st.sampled_from(["%2Fnowhere/d", "%2Fnowhere,%2Fno:1/d", "%2Fnowhere:x/d", "/d?sslmod=x", "h:5:5/d", "[::1/d"]),
)


@pytest.fixture
def place(tarazu: Commands, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give out a folder with books, where nothing is served and no other machine is asked."""

    def refuse(*_: object, **__: object) -> int:
        raise ServingError("Nothing is served here.")

    monkeypatch.setattr(serving, "serve", refuse)
    monkeypatch.setenv("PGHOST", "/nowhere")
    monkeypatch.setattr("tarazu.service.books.AWAY_S", 0)
    tarazu.account()
    return folder


def _end(arguments: Sequence[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Run a command, which must end as promised; answer with what it said."""
    status = run(arguments)
    said = capsys.readouterr()
    assert status in {0, 1, 2}
    assert status == 0 or said.err.startswith("tarazu: ") or said.out, (arguments, said)
    assert "Traceback" not in said.err + said.out
    return said.err


EACH_IN_ONE_PLACE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@EACH_IN_ONE_PLACE
@given(st.sampled_from(QUICK), st.lists(ODD, max_size=4), st.integers(0, 3))
@pytest.mark.usefixtures("place")
def test_any_arguments(capsys: pytest.CaptureFixture[str], command: tuple[str, ...], odd: list[str], kept: int) -> None:
    """Odd values after a command, behind as many of its own as are kept."""
    _end([*command, *WITH_BOOKS.get(command, ())[:kept], *odd], capsys)


@EACH_IN_ONE_PLACE
@given(st.sampled_from([*QUICK, ("serve",)]), DATABASES)
def test_any_database_in_the_environment(
    place: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...], database: str
) -> None:
    """The check refuses what the service would; a password is never repeated."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        try:
            patch.setenv("TARAZU_DATABASE_URL", database)
        except (UnicodeEncodeError, ValueError):
            return  # no environment can hold it
        _end([*command, *WITH_BOOKS.get(command, ())], capsys)


@EACH_IN_ONE_PLACE
@given(st.sampled_from([("check",), ("serve",), ("account", "list"), ("db", "upgrade")]), HOSTS, DATABASES, ODD)
def test_any_text_in_the_file(
    place: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...], host: str, database: str, url: str
) -> None:
    """Hosts, databases and addresses, as they are read from the file."""
    try:
        texts = [_quoted(text) for text in (host, url, database)]
    except UnicodeEncodeError:
        return  # the file is UTF-8
    settings_ = "[server]\nhost = {}\npublic_url = {}\n[database]\nurl = {}\n".format(*texts)
    (place / "odd.toml").write_text(settings_ + CATALOGUE, "utf-8")
    _end([*command, "--config", "odd.toml"], capsys)
    for made in set(place.iterdir()) - {place / "tarazu.toml", place / "tarazu.db", place / "odd.toml"}:
        shutil.rmtree(made) if made.is_dir() else made.unlink()


def _quoted(text: str) -> str:
    text.encode()
    return '"' + "".join(f"\\U{ord(character):08x}" for character in text) + '"'


@pytest.mark.parametrize("variable", ["TARAZU_CONFIG", "TARAZU_OPERATOR", "TARAZU_DATABASE_URL", "TARAZU_URL"])
@pytest.mark.usefixtures("place")
def test_a_variable_that_is_no_text_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    """Bytes of another encoding are refused by every command."""
    monkeypatch.setitem(os.environ, variable, "caf\udce9")
    assert _end(["account", "list"], capsys).startswith(
        f"tarazu: The environment variable {variable} is no Unicode text"
    )


def test_a_folder_that_has_gone(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A command that is run in a folder which somebody has removed says so."""
    gone = place / "gone"
    gone.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(gone)
        gone.rmdir()
        for command in (("account", "list"), ("check",), ("db", "backup", "b.db"), ("db", "upgrade")):
            _end(command, capsys)
