"""What holds for all commands: mistyped ones, interruption, broken pipes, fast starts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tarazu.cli import running
from tests.cli.commands import COMMAND, Commands, clean_environ, run_process
from tests.support.patience import PATIENCE_S
from tests.support.stores import SqliteStore

HEAVY = ("alembic", "granian", "httptools", "sqlalchemy", "starlette", "xllamacpp")
LIGHT_COMMANDS = (
    ["--version"],
    ["--help"],
    ["account", "--help"],
    ["key", "create", "--help"],
    ["serve", "--help"],
    ["chat", "--help"],
)


@pytest.mark.parametrize(
    ("arguments", "problem", "command"),
    [
        (("keg", "list"), 'Unknown command "keg". Did you mean "key"?', "tarazu"),
        (("account", "lis"), 'Unknown command "lis". Did you mean "list"?', "tarazu account"),
        (("account", "show"), 'Command "account show" parameter ID requires an argument.', "tarazu account show"),
        (("account", "list", "--jsn"), "Unknown option: --jsn. Did you mean --json?", "tarazu account list"),
        (("account", "list", "x"), "Unused Tokens: ['x'].", "tarazu account list"),
        (("key", "create", "a"), 'Command "key create" parameter --name requires an argument.', "tarazu key create"),
        (
            ("account", "create", "--name", "A", "--status", "activ"),
            'Invalid value "activ" for --status. Choose from: "active", "unverified", "inactive", "blocked".',
            "tarazu account create",
        ),
    ],
)
def test_a_mistyped_command_is_told_with_its_help(
    tarazu: Commands, arguments: tuple[str, ...], problem: str, command: str
) -> None:
    """A usage error is one line on standard error, then the command that helps; exit status 2, no box, no traceback."""
    ran = tarazu(*arguments)
    assert (ran.status, ran.out) == (2, "")
    told, advice = ran.err.splitlines()
    assert told.startswith(f"tarazu: {problem}")
    assert advice == f"See how it is used: {command} --help"


def test_errors_and_results_go_to_their_own_streams(folder: Path, sqlite_store: SqliteStore) -> None:
    """As a process too: an error is on standard error alone, with exit status 1, and no traceback."""
    sqlite_store.new_books(folder)
    ran = run_process("account", "show", "acc_x", folder=folder)
    assert (ran.status, ran.out) == (1, "")
    assert ran.err == "tarazu: There is no account 'acc_x'. List them with: tarazu account list\n"


def test_python_runs_the_commands_as_a_module(folder: Path) -> None:
    """`python -m tarazu` is the same program."""
    ran = subprocess.run(
        [sys.executable, "-m", "tarazu", "account", "lis"],
        capture_output=True,
        text=True,
        cwd=folder,
        env=clean_environ(),
        timeout=PATIENCE_S,
        check=False,
    )
    assert (ran.returncode, ran.stderr.splitlines()[1]) == (2, "See how it is used: tarazu account --help")


@pytest.mark.parametrize("arguments", [[], ["key"], ["--help"], ["key", "create", "--help"]])
def test_help_is_a_result(tarazu: Commands, arguments: list[str]) -> None:
    """Help, asked for or shown because a command needs another word, is on standard output with exit status 0."""
    ran = tarazu(*arguments)
    assert (ran.status, ran.err) == (0, "")
    assert ran.out.startswith("Usage: tarazu")


def test_ctrl_c_is_quiet(tarazu: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupted command prints nothing and ends with status 130."""

    def interrupted(_arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "app_for", interrupted)
    ran = tarazu("account", "list")
    assert (ran.status, ran.out, ran.err) == (130, "", "")


@pytest.mark.parametrize("arguments", [["--help"], ["account", "list"], ["check", "--json"], ["openapi"]])
def test_a_reader_that_leaves_is_no_error(folder: Path, sqlite_store: SqliteStore, arguments: list[str]) -> None:
    """When the other end of the pipe is closed the command ends quietly."""
    sqlite_store.new_books(folder)
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed_pipe:
        ran = subprocess.run(
            [COMMAND, *arguments],
            stdout=closed_pipe,
            stderr=subprocess.PIPE,
            cwd=folder,
            env=clean_environ(),
            timeout=PATIENCE_S,
            check=False,
        )
    assert ran.stderr == b""
    assert ran.returncode in {1, 141}


def test_a_terminal_without_unicode_fails_nothing(folder: Path, sqlite_store: SqliteStore) -> None:
    """Where a character cannot be shown its number is, and the command works."""
    sqlite_store.new_books(folder)
    created = run_process(
        "account", "create", "--name", "آدا", folder=folder, environ=clean_environ(PYTHONIOENCODING="ascii")
    )
    assert (created.status, created.err) == (0, "")
    assert r"Name     \u0622\u062f\u0627" in created.out


def test_light_commands_load_nothing_heavy() -> None:
    """The version and every help text start without database, server, HTTP client or model library."""
    script = (
        "import sys\n"
        "from tarazu.cli.running import run\n"
        f"for arguments in {LIGHT_COMMANDS}:\n"
        "    assert run(arguments) == 0\n"
        f"loaded = [name for name in {HEAVY} if name in sys.modules]\n"
        "sys.exit(f'loaded: {loaded}' if loaded else 0)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
