"""Run one command from the arguments of a process, and turn its end into an exit status."""

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from cyclopts import CoercionError, CycloptsError

from tarazu.cli.app import app
from tarazu.cli.errors import CommandError, UsageError
from tarazu.cli.output import say_aside

EXIT_INTERRUPTED = 130
"""What shells say of a program that SIGINT has ended."""
EXIT_BROKEN_PIPE = 141
"""What shells say of a program that SIGPIPE has ended."""


def main() -> NoReturn:
    """Run the command that the process's arguments name."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character shows its number; nothing fails over it.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # a real process has text streams
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command; answer with its exit status.

    What a person can put right is said in one line on standard error. Only a fault of ours leaves a traceback.
    """
    try:
        status: int | None = app(arguments)
        sys.stdout.flush()
    except CommandError as error:
        return _say(error)
    except CycloptsError as error:
        problem = str(error)
        if isinstance(error, CoercionError) and error.argument and error.token and error.token.keyword is None:
            problem = f"Invalid value for {error.argument.name}: {problem}"
        command = " ".join(["tarazu", *(error.command_chain or ())])
        return _say(UsageError(problem, f"See how it is used: {command} --help"))
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader has gone. What is still buffered must not fail again when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_BROKEN_PIPE
    return status or 0


def _say(error: CommandError) -> int:
    say_aside(f"tarazu: {error}")
    return error.exit_status
