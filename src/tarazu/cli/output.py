"""Print what a command found: tables for people, one JSON document for programs."""

# ruff: noqa: PLC0415 - drawing is loaded only when something is drawn, so that every command starts fast

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from tarazu.cli.errors import UsageError

if TYPE_CHECKING:
    from rich.table import Table

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SURROGATES = re.compile(r"[\ud800-\udfff]")

LINE_WIDTH_MAX = 10_000
"""Of a table that no terminal bounds: nothing is wrapped or cut in a pipe or a file."""
INDENT = 2


class Column(Struct, frozen=True):
    """One column of a table. A `whole` one is never wrapped while another can be; numbers stand on the right."""

    heading: str
    whole: bool = False
    number: bool = False


def say(text: str = "") -> None:
    """Print a line to standard output, at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def say_aside(text: str) -> None:
    """Print a line to standard error: what is not the command's result."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def print_json(document: object) -> None:
    """Print one JSON document, indented when a person looks on."""
    text = msgspec.json.encode(document)
    say((msgspec.json.format(text, indent=INDENT) if sys.stdout.isatty() else text).decode())


def print_table(columns: Sequence[Column], rows: Iterable[Sequence[object]]) -> None:
    """Print rows under headings. None is left empty; numbers get their thousands apart."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(
            column.heading.upper(),
            justify="right" if column.number else "left",
            no_wrap=column.whole or column.number,
            overflow="fold",
        )
    _print(table, rows)


def print_fields(fields: Iterable[tuple[str, object]]) -> None:
    """Print one thing, a field a line. None is left empty."""
    from rich.table import Table

    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    _print(table, fields)


@contextmanager
def progress() -> Iterator[Callable[[str, float | None], None]]:
    """Show what a long command is doing, on standard error where a terminal is there, while the block runs.

    The function that is given out takes the act, and how much of it is done, from 0 to 1; None where that is not known.
    """
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bars:
        task = bars.add_task("", total=1)

        def tell(act: str, done: float | None) -> None:
            bars.update(task, description=act, total=None if done is None else 1, completed=done or 0)

        yield tell


def confirmed(question: str) -> bool:
    """Ask a person at the terminal, on standard error: y or n, and n when nothing is said."""
    from rich.console import Console
    from rich.prompt import Confirm
    from rich.text import Text

    try:
        return Confirm.ask(Text(question), console=Console(stderr=True), default=False)
    except EOFError:
        return False


def shown(value: object) -> str:
    """Write a value for people."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case tuple():
            return ", ".join(map(str, value))
        case _:
            return str(value)


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Write a number of things: 1 credit, 2,000 credits."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def printable(text: str) -> str:
    """Take out the control characters, by which a text from elsewhere could drive the terminal; lines and tabs stay."""
    return _CONTROLS.sub("", text)


def unicode_text(text: str, what: str) -> str:
    """Refuse what the shell handed on as bytes that are no text.

    Raises:
        UsageError: `what` is no Unicode text.
    """
    if _SURROGATES.search(text):
        raise UsageError(f"{what} is no Unicode text.", "Send text in UTF-8.")
    return text


def _print(table: "Table", rows: Iterable[Sequence[object]]) -> None:
    from rich.console import Console
    from rich.text import Text

    for row in rows:
        table.add_row(*(Text(shown(value)) for value in row))  # Text: a name with brackets is no markup
    console = Console(highlight=False, width=None if sys.stdout.isatty() else LINE_WIDTH_MAX)
    with console.capture() as capture:
        console.print(table)
    # Written by ourselves: the library would end the process on a broken pipe in its own way.
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in capture.get().splitlines()))
