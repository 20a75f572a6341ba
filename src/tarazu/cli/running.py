"""Run one command from the arguments of a process, and turn its end into an exit status."""

import os
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from tarazu.cli.acts import acts_noted
from tarazu.cli.errors import CommandError, UsageError
from tarazu.cli.output import say, say_aside, unicode_text
from tarazu.cli.pasted import without_secrets
from tarazu.cli.program import as_typed, name_configuration
from tarazu.cli.streams import give_output_up, is_unwritable, prepare_streams
from tarazu.service.shortages import shortage

if TYPE_CHECKING:
    from cyclopts import App, CycloptsError

EXIT_INTERRUPTED = 130
"""What shells say of a program that SIGINT has ended."""
REPEATED_CHARACTERS_MAX = 64
"""Of an argument, in a message about it."""
EXIT_BROKEN_PIPE = 141
"""What shells say of a program that SIGPIPE has ended."""


def main() -> NoReturn:
    """Run the command that the process's arguments name."""
    prepare_streams()
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command; answer with its exit status. Every command begins and ends here.

    What a person can put right is said in one line on standard error, and what was done before it in a line each. Only
    a fault of ours leaves a traceback.
    """
    name_configuration(None)
    with acts_noted() as acts:
        try:
            status = _run(arguments)
            sys.stdout.flush()
        except BaseException as error:
            failed = _failed(error, arguments)
            for act in acts:
                say_aside(act)
            if failed is None:
                raise
            return failed
    return status or 0


def _failed(error: BaseException, arguments: Sequence[str]) -> int | None:
    """Say why a command has failed, and answer with its exit status; None for a fault of ours."""
    match error:
        case CommandError():
            say_aside(f"tarazu: {_shortened(without_secrets(as_typed(str(error))), arguments)}")
            return error.exit_status
        case KeyboardInterrupt():
            return EXIT_INTERRUPTED
        case BrokenPipeError():  # the reader has gone
            give_output_up()
            return EXIT_BROKEN_PIPE
        case OSError() if is_unwritable(error):
            give_output_up()
            say_aside(f"tarazu: The output cannot be written: {error.strerror}.")
            return CommandError.exit_status
        case _ if (missing := shortage(error)) is not None:
            say_aside(f"tarazu: {missing}")
            return CommandError.exit_status
        case _:
            return None


def _shortened(text: str, arguments: Sequence[str]) -> str:
    """Repeat of a long argument only the beginning; a path is repeated whole."""
    for argument in sorted(arguments, key=len, reverse=True):
        for value in (argument, argument.partition("=")[2]):
            if len(value) > REPEATED_CHARACTERS_MAX and "/" not in value:
                text = text.replace(value, f"{value[:REPEATED_CHARACTERS_MAX]}…")
    return text


def app_for(first: str | None) -> "App":
    """Make the program with the command of this first word, or with all commands."""
    from tarazu.cli.app import app_for as make  # noqa: PLC0415 - the version is told without it

    return make(first)


def _run(arguments: Sequence[str]) -> int | None:
    if list(arguments) == ["--version"]:
        from tarazu.cli.release import release  # noqa: PLC0415 - no other command needs it

        say(release())
        return None
    _refuse_odd_texts(arguments)
    _require_folder()
    from cyclopts import CycloptsError  # noqa: PLC0415 - the version is told without it

    try:
        status: int | None = app_for(next(iter(arguments), None))(arguments)
    except CycloptsError as error:
        raise _usage_error(error, arguments) from None
    return status


def _refuse_odd_texts(arguments: Sequence[str]) -> None:
    """Refuse bytes that are no text, in what a person types or sets: no file, database or JSON takes them."""
    for place, argument in enumerate(arguments, start=1):
        unicode_text(argument, f"Argument {place}")
    for name, value in os.environ.items():
        if name.startswith("TARAZU_"):
            unicode_text(value, f"The environment variable {name}")


def _require_folder() -> None:
    try:
        Path.cwd()
    except FileNotFoundError:
        raise CommandError("The folder in which this was run is not there any more.", "Change to another.") from None


def _usage_error(error: "CycloptsError", arguments: Sequence[str]) -> UsageError:
    from cyclopts import CoercionError, MissingArgumentError  # noqa: PLC0415 - as above

    problem = str(error)
    if isinstance(error, CoercionError) and error.argument and error.token and error.token.keyword is None:
        problem = f"Invalid value for {error.argument.name}: {problem}"
    elif isinstance(error, MissingArgumentError) and (option := _given_a_dash(arguments)) is not None:
        name, value = option
        problem = f"{name} is followed by {value}, which looks like an option. Write it as {name}={value}"
    command = " ".join(["tarazu", *(error.command_chain or ())])
    return UsageError(problem, f"See how it is used: {command} --help")


def _given_a_dash(arguments: Sequence[str]) -> tuple[str, str] | None:
    """Find an option whose value begins with a dash, as in `--expires -1d`."""
    return next(
        (
            (option, value)
            for option, value in pairwise(arguments)
            if option.startswith("--") and "=" not in option and value.startswith("-") and not value.startswith("--")
        ),
        None,
    )
