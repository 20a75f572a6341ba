"""Write docs/commands.md: every command's help, as it prints it.

Renew the page with: python -m tests.cli.commands_page > docs/commands.md
"""

import sys
from collections.abc import Iterator
from io import StringIO

from cyclopts import App
from rich.console import Console

from tarazu.cli.app import whole_app

WIDTH = 100
INTRODUCTION = """\
# Commands

This page is what the commands themselves print with `--help`.

- **Configuration.** `--config FILE`, else `$TARAZU_CONFIG`, else `./tarazu.toml`; with none of them, the built-in demo
  catalogue. [configuration.md](configuration.md) explains the file.
- **For programs.** `--json` prints one JSON document to standard output, on one line in a pipe. Times are ISO 8601 in
  UTC, amounts are whole credits.
- **Errors** are one line on standard error that begins with `tarazu:`, followed by what to do next.
- **Exit status.** 0: done. 1: it cannot be done, or `check` or `audit` has found something wrong. 2: the command was
  mistyped. 130: interrupted by Ctrl-C. 141: the reader of the output has gone.
- **Keys, tokens and links** of invitations are shown once, by the command that makes them, and are never an argument.
  `tarazu chat` takes its key from `$TARAZU_API_KEY` or `--key-file`, or asks for it without an echo.
- **Durations** are days, hours, minutes and seconds, in this order: `90d`, `12h`, `1h30m`, `45s`.
- **Numbers** are whole, in Latin, Persian or Arabic digits; between groups of three there may be separators of one
  kind: `1,000`, `1_000`, `۱٬۰۰۰`. `1,5` and `0,500` are refused. A negative number has digits alone: `-1000`.
"""


def commands_page() -> str:
    """Write the whole page."""
    return "\n".join([INTRODUCTION, *(_section(path) for path in command_paths(whole_app()))])


def command_paths(parent: App, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """List the words of every command, in the order of registration, from the program itself on."""
    yield path
    for name in parent:
        if not name.startswith("-"):
            yield from command_paths(parent[name], (*path, name))


def _section(path: tuple[str, ...]) -> str:
    text = StringIO()
    whole_app().help_print(path, console=Console(file=text, width=WIDTH, force_terminal=False, color_system=None))
    lines = "\n".join(line.rstrip() for line in text.getvalue().strip().splitlines())
    return f"## {' '.join(('tarazu', *path))}\n\n```text\n{lines}\n```\n"


if __name__ == "__main__":
    sys.stdout.write(commands_page())
