"""Closed and full outputs: a command fails in one line, and what is shown once is not lost in silence."""

import subprocess
from pathlib import Path

import pytest

from tests.cli.commands import COMMAND, Commands, Ran, clean_environ
from tests.support.patience import PATIENCE_S
from tests.support.rows import rows

FULL = ">/dev/full"
CLOSED = ">&-"
OUTPUTS = {FULL: "No space left on device", CLOSED: "Bad file descriptor"}


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
    ("command", "made", "next_step", "output"),
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
    tarazu: Commands, folder: Path, command: tuple[str, ...], made: str, next_step: str, output: str
) -> None:
    """Where it cannot be shown, the message has its id and the command that revokes or replaces it; status 1."""
    account = tarazu.account("--email", "ada@example.com")
    names = {
        "account": account,
        "key": tarazu.json("key", "create", account, "--name", "k")["id"],
        "operator": tarazu.json("admin", "operator", "create", "--email", "a@example.com", "--name", "A")["id"],
    }
    ran = run_in_shell(folder, tuple(part.format(**names) for part in command), output)
    problem, advice = ran.err.splitlines()
    assert problem.startswith(f"tarazu: {made}")
    assert "but could not be shown: " in problem
    assert f"tarazu {next_step}" in advice
    if not output.startswith("|"):  # of a pipeline the shell tells the last one's status
        assert ran.status == 1
