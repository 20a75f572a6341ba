"""What holds for all commands: mistyped ones, interruption, broken pipes, fast starts."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tarazu.cli import running
from tarazu.cli.app import COMMANDS
from tests.cli.commands import COMMAND, Commands, clean_environ, run_process
from tests.cli.every_command import WITH_BOOKS, WITHOUT_BOOKS
from tests.support.patience import PATIENCE_S
from tests.support.rows import rows
from tests.support.stores import SqliteStore

HEAVY = (
    "alembic",
    "asyncio",
    "granian",
    "httptools",
    "sqlalchemy",
    "starlette",
    "tarazu.service.configuration",
    "xllamacpp",
)
FOREIGN = {
    ("--version",): ("cyclopts", "rich", *HEAVY),
    ("check",): ("rich", "alembic", "granian", "sqlalchemy", "starlette", "tarazu.api", "tarazu.cli.account"),
    ("account", "list"): (
        "alembic",
        "granian",
        "psycopg",
        "rich",
        "sqlalchemy.dialects.postgresql",
        "starlette",
        "tarazu.api",
        "tarazu.cli.chat",
        "tarazu.cli.key",
        "uvloop",
    ),
}
"""What a command has no use for, on SQLite: it is not to pay for loading it."""
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
    assert ran.err == f"tarazu: There is no account 'acc_x'. List them with: {COMMAND} account list\n"


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


@pytest.mark.parametrize("arguments", FOREIGN)
def test_a_command_loads_nothing_that_it_has_no_use_for(
    folder: Path, sqlite_store: SqliteStore, arguments: tuple[str, ...]
) -> None:
    """No other command, no driver and no dialect of another database, nothing that draws where nothing is drawn."""
    if arguments != ("check",):
        sqlite_store.new_books(folder)
    script = (
        "import sys\n"
        "from tarazu.cli.running import run\n"
        f"assert run({list(arguments)}) == 0\n"
        f"loaded = [name for name in {FOREIGN[arguments]} if name in sys.modules]\n"
        "sys.exit(f'loaded: {loaded}' if loaded else 0)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        cwd=folder,
        env=clean_environ(),
        timeout=PATIENCE_S,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")


def test_the_programs_help_says_of_each_command_what_its_own_does() -> None:
    """The first line of a command's help stands in the program's, which loads no command.

    In a process of its own: where one has shown the program's help, its words are the commands' from then on.
    """
    script = (
        "import inspect, json\n"
        "from tarazu.cli.app import COMMANDS, whole_app\n"
        "app = whole_app()\n"
        "print(json.dumps({name: inspect.cleandoc(app[name].help or '').splitlines()[0] for name in COMMANDS}))\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    assert json.loads(ran.stdout) == {name: command.help for name, command in COMMANDS.items()}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("key", "create", "a", "--name", "x", "--expires", "-1d"), "Write it as --expires=-1d"),
        (("account", "create", "--name", "-5+3"), "Write it as --name=-5+3"),
        (("key", "create", "a", "--name", "x", "--expires", "0d"), "expected at least 1s, got 0d"),
        (("admin", "token", "create", "--name", "x", "--scopes", "read", "--expires", "0s"), "expected at least 1s"),
    ],
)
def test_a_value_that_is_taken_for_something_else_is_explained(
    tarazu: Commands, arguments: tuple[str, ...], words: str
) -> None:
    """One that begins with a dash is written behind a sign of equality; a time that ends at once is none."""
    ran = tarazu(*arguments)
    assert ran.status == 2
    assert words in ran.err


@pytest.mark.parametrize("letter", ["z", "9", "ö"])
def test_a_long_argument_is_not_repeated_whole(tarazu: Commands, letter: str) -> None:
    """In the place of any other, whatever is wrong with it: the beginning shows which one it is."""
    long = letter * 300
    refused = 0
    for path, arguments in WITH_BOOKS.items():
        for place, argument in enumerate(arguments):
            if argument.startswith("--") or path == ("db", "backup"):
                continue
            ran = tarazu(*path, *arguments[:place], long, *arguments[place + 1 :])
            refused += ran.status != 0
            assert letter * 65 not in ran.err, path
        if not arguments:
            assert letter * 65 not in tarazu(*path, long).err, path
            assert letter * 65 not in tarazu(*path, f"--{long}").err, path
    assert refused > 10


@rows("decisions.added_by_this_project.17")
def test_a_secret_that_is_pasted_is_not_repeated(tarazu: Commands) -> None:
    """Whole keys, tokens and links, wherever they are pasted; the message names the id of a key or a token."""
    account = tarazu.account("--email", "ada@example.com")
    key = tarazu.json("key", "create", account, "--name", "k")
    token = tarazu.json("admin", "token", "create", "--name", "t", "--scopes", "read")
    link = tarazu.json("account", "invite", account)["link"].rpartition("/")[2]
    for path, arguments in {**WITH_BOOKS, **WITHOUT_BOOKS, ("keg",): ("x",)}.items():
        for secret in (key["secret"], token["secret"], key["secret"][:-1], link):
            for place in range(len(arguments)):
                if arguments[place].startswith("-") or path in {("chat",), ("db", "backup")} or not arguments:
                    continue
                ran = tarazu(*path, *arguments[:place], secret, *arguments[place + 1 :])
                assert secret[16:48] not in ran.err or (secret is link and ran.status == 0)
    for command in (("key", "revoke"), ("key", "replace")):
        assert f"Its id is {key['id']}\n" in tarazu(*command, key["secret"]).err
    assert f"Its id is {token['id']}\n" in tarazu("admin", "token", "revoke", token["secret"]).err
