"""Closed and full outputs: a command fails in one line, and what is shown once is not lost in silence."""

import fcntl
import json
import os
import subprocess
import termios
from array import array
from collections.abc import Callable
from pathlib import Path
from select import PIPE_BUF
from tempfile import TemporaryDirectory

import pytest

from tarazu.service.control import Control, Told
from tests.cli.commands import COMMAND, Commands, Ran, clean_environ
from tests.cli.every_command import WITH_BOOKS
from tests.cli.scripted_api import KEY, reply, scripted_api
from tests.support.at_once import wait_until
from tests.support.backups import dump_of
from tests.support.forked import Output, begin
from tests.support.patience import PATIENCE_S
from tests.support.rows import rows

FULL = ">/dev/full"
CLOSED = ">&-"
OUTPUTS = {FULL: "No space left on device", CLOSED: "Bad file descriptor"}
READING = frozenset({"list", "show", "history", "trail", "audit", "status", "request"})
"""The last words of commands that change nothing."""


def run_in_shell(folder: Path, arguments: tuple[str, ...], redirections: str) -> Ran:
    """Run one command as a shell does, with its streams as written."""
    ran = subprocess.run(
        ["/bin/sh", "-c", f'exec "$0" "$@" {redirections}', str(COMMAND), *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env=clean_environ(),
        timeout=PATIENCE_S,
        check=False,
    )
    return Ran(ran.returncode, ran.stdout, ran.stderr)


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        (("--version",), FULL),
        (("--help",), FULL),
        (("check",), CLOSED),
        (("account", "list", "--json"), FULL),
        (("account", "list"), CLOSED),
        (("openapi",), FULL),
    ],
)
@pytest.mark.usefixtures("tarazu")
def test_an_output_that_takes_nothing_is_one_line(folder: Path, arguments: tuple[str, ...], output: str) -> None:
    """On standard error, with the system's reason and status 1."""
    ran = run_in_shell(folder, arguments, output)
    assert (ran.status, ran.err) == (1, f"tarazu: The output cannot be written: {OUTPUTS[output]}.\n")


@pytest.mark.usefixtures("tarazu")
def test_an_output_that_waits_for_nobody_gets_it_all(folder: Path) -> None:
    """As a pipe or a terminal is that another program has left so, with a reader that is slower than the command."""
    readable, writable = os.pipe()
    with open(readable, "rb") as reader, open(writable, "wb", buffering=0) as output:  # noqa: PTH123 - a descriptor
        os.set_blocking(writable, False)
        while output.write(bytes(PIPE_BUF)):
            pass
        with subprocess.Popen([COMMAND, "openapi"], stdout=output, cwd=folder, env=clean_environ()) as ran:
            output.close()
            document = reader.read().lstrip(b"\0")
            assert ran.wait(PATIENCE_S) == 0
    assert json.loads(document)["info"]["title"]


def test_an_input_that_waits_for_nobody_is_read_to_its_end(folder: Path) -> None:
    """A prompt that comes in two pieces, of which the first could be taken for the whole."""
    readable, writable = os.pipe()
    os.set_blocking(readable, False)
    environ = clean_environ(TARAZU_API_KEY=KEY)
    with scripted_api() as api, open(readable, "rb") as prompt, open(writable, "wb", buffering=0) as written:  # noqa: PTH123 - descriptors
        api.replies.append(reply("Fine."))
        written.write(b"Translate this: ")
        command = (COMMAND, "chat", "--url", api.url)
        with subprocess.Popen(command, stdin=prompt, stdout=subprocess.DEVNULL, cwd=folder, env=environ) as ran:
            wait_until(lambda: array("i", fcntl.ioctl(prompt, termios.FIONREAD, bytes(4)))[0] == 0)
            written.write(b"Good morning")
            written.close()
            assert ran.wait(PATIENCE_S) == 0
    assert "Translate this: Good morning" in str(api.asked)


@pytest.mark.parametrize("streams", ["2>&-", "<&-", "<&- 2>&-", "2>/dev/full"])
@pytest.mark.usefixtures("tarazu")
def test_other_streams_may_be_closed(folder: Path, streams: str) -> None:
    """A command that prints its result needs neither input nor a place for messages; no file takes their numbers."""
    ran = run_in_shell(folder, ("intake", "status"), streams)
    assert (ran.status, ran.out, ran.err) == (0, "Intake is running: completions are taken.\n", "")


@pytest.mark.usefixtures("tarazu")
def test_an_error_that_nobody_can_hear_fails_all_the_same(folder: Path) -> None:
    """The status says that it was not done, where standard error is closed."""
    assert run_in_shell(folder, ("account", "show", "acc_x"), "2>&-") == Ran(1, "", "")


def test_chat_without_input_asks_nothing(folder: Path) -> None:
    """Standard input that is closed is an empty prompt."""
    ran = run_in_shell(folder, ("chat",), "<&-")
    assert (ran.status, ran.err.splitlines()[0]) == (2, "tarazu: The prompt is empty.")


@rows("decisions.added_by_this_project.16")
@pytest.mark.parametrize(
    ("command", "what", "next_step", "output"),
    [
        (("key", "create", "{account}", "--name", "lost"), "The key key_", "key replace key_", FULL),
        (("key", "create", "{account}", "--name", "lost", "--json"), "The key key_", "key replace key_", CLOSED),
        (("key", "replace", "{key}"), "The key key_", "key replace key_", "| (exec true)"),
        (("account", "invite", "{account}"), "A link for acc_", "account invite acc_", FULL),
        (
            ("admin", "token", "create", "--name", "t", "--scopes", "read"),
            "The token tok_",
            "admin token revoke tok_",
            FULL,
        ),
        (
            ("admin", "operator", "create", "--email", "o@example.com", "--name", "O"),
            "A link for opr_",
            "admin operator invite opr_",
            FULL,
        ),
        (("admin", "operator", "invite", "{operator}"), "A link for opr_", "admin operator invite opr_", CLOSED),
    ],
)
def test_what_is_shown_once_is_not_lost_in_silence(
    tarazu: Commands, folder: Path, command: tuple[str, ...], what: str, next_step: str, output: str
) -> None:
    """Where it cannot be shown, the message has its id and the command that revokes or replaces it; status 1."""
    account = tarazu.account("--email", "ada@example.com")
    names = {
        "account": account,
        "key": tarazu.json("key", "create", account, "--name", "k")["id"],
        "operator": tarazu.json("admin", "operator", "create", "--email", "a@example.com", "--name", "A")["id"],
    }
    ran = run_in_shell(folder, tuple(part.format(**names) for part in command), output)
    problem, advice, *_ = ran.err.splitlines()
    assert problem.startswith(f"tarazu: {what}")
    assert "but could not be shown: " in problem
    assert f"tarazu {next_step}" in advice
    if not output.startswith("|"):  # of a pipeline the shell tells the last one's status
        assert ran.status == 1


def test_what_is_done_is_told_where_its_result_cannot_be_printed(tarazu: Commands, folder: Path) -> None:
    """Each command that has changed the books or a file says so in a line of its own; one that has not, says no such.

    Which are those is seen from what they leave behind, so one that is added is held to it too.
    """
    changing = set[tuple[str, ...]]()
    tarazu("db", "backup", "restored.db")
    for path, given in {**WITH_BOOKS, ("db", "upgrade"): (), ("db", "restore"): ("restored.db", "--yes")}.items():
        if path == ("request",):
            continue  # there is none that it could show
        names = made(tarazu, "-".join(path), given)
        if path == ("db", "upgrade"):
            for file in folder.glob("tarazu.db*"):
                file.unlink()
        before = left_behind(folder)
        arguments = (next((names[kind] for kind in names if part.startswith(kind)), part) for part in given)
        ran = run_on_full(folder, (*path, *arguments))
        problem, *told = ran.err.splitlines()
        assert OUTPUTS[FULL] in problem, path
        assert ran.status == 1, path
        if left_behind(folder) != before:
            changing.add(path)
            assert told, path
        else:
            assert not told, path
    assert len(changing) == len(WITH_BOOKS) + 2 - sum(path[-1] in READING for path in WITH_BOOKS)


def run_on_full(folder: Path, arguments: tuple[str, ...]) -> Ran:
    """Run one of many commands as `run_in_shell` does with FULL, forked."""
    with TemporaryDirectory() as name:
        output = Output(Path("/dev/full"), Path(name, "err"))
        status = begin(arguments, clean_environ(), output, cwd=folder).wait(PATIENCE_S)
        return Ran(status, "", output.err.read_text())


def made(tarazu: Commands, name: str, arguments: tuple[str, ...]) -> dict[str, str]:
    """Make what the arguments name: account, key, operator or token; answer with the ids, each by its beginning."""

    def key() -> str:
        account = tarazu.account("--email", f"key-{name}@example.com", "--plan", "basic")
        key_id = str(tarazu.json("key", "create", account, "--name", "k")["id"])
        if name == "key-resume":
            tarazu.json("key", "pause", key_id)
        return key_id

    operator = ("admin", "operator", "create", "--email", f"{name}@example.com", "--name", "A")
    makers: dict[str, Callable[[], str]] = {
        "acc_": lambda: tarazu.account("--email", f"{name}@example.com", "--plan", "basic"),
        "key_": key,
        "opr_": lambda: str(tarazu.json(*operator)["id"]),
        "tok_": lambda: str(tarazu.json("admin", "token", "create", "--name", "t", "--scopes", "read")["id"]),
    }
    wanted = [kind for kind in makers if any(part.startswith(kind) for part in arguments)]
    return {kind: makers[kind]() for kind in wanted}


def left_behind(folder: Path) -> object:
    """Read all that commands may have changed: the books' rows, and which other files there are."""
    books = folder / "tarazu.db"
    names = {path.name for path in folder.iterdir() if not path.name.startswith(books.name)}
    return names, dump_of(books) if books.exists() else None


def test_an_adjustment_whose_result_is_lost_is_not_repeated(tarazu: Commands, folder: Path) -> None:
    """The line names the account, the credits and the adjustment, and says whether a repetition does it once more."""
    account = tarazu.account()
    ran = run_in_shell(folder, ("credit", "adjust", account, "1000", "--reason", "oops"), FULL)
    (change,) = tarazu.json("credit", "history", account)["changes"]
    told = f"The balance of {account} was changed by +1,000 ({change['id']}); do not repeat the command."
    assert ran.err.splitlines()[1:] == [told]
    again = ("credit", "adjust", account, "5", "--reason", "oops", "--reference", "r")
    for _ in range(2):
        assert run_in_shell(folder, again, CLOSED).err.endswith("; the reference r again changes nothing.\n")
    assert tarazu.json("account", "show", account)["balance"] == 1005


def test_what_is_done_is_told_where_the_rest_fails(tarazu: Commands) -> None:
    """Of two acts of a command the second may be refused; a person learns that the first was done."""
    account = tarazu.account("--email", "ada@example.com")
    ran = tarazu("account", "set", account, "--no-second-factor", "--plan", "none-such")
    assert ran.status == 1
    assert ran.err.splitlines()[-1] == f"The holder of {account} has no second factor."


@pytest.mark.parametrize("act", ["reload", "drain"])
@pytest.mark.usefixtures("tarazu")
def test_what_a_service_was_told_is_not_lost(folder: Path, act: str) -> None:
    """It reloads, or drains, whether or not the command can print it."""
    Control(folder / "tarazu.toml", "", lambda ask: Told(f"{ask.act} done")).start()
    ran = run_in_shell(folder, (act,), FULL)
    assert (ran.status, f"{act} done" in ran.err.splitlines()[1]) == (1, True)


def test_a_reply_that_is_paid_and_cannot_be_printed_is_told(folder: Path) -> None:
    """With what it has cost."""
    (folder / "key").write_text(KEY)
    (folder / "key").chmod(0o600)
    with scripted_api() as api:
        api.replies = [reply("Paris.")]
        ran = run_in_shell(folder, ("chat", "Hi", "--key-file", "key", "--url", api.url), FULL)
    assert ran.err.splitlines()[1] == "The reply was given, and is charged: test/one: 2 credits from the plan."
