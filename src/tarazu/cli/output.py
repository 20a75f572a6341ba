"""Print what a command found: tables for people, one JSON document for programs.

All that is printed goes out here, and cannot drive a terminal, wherever it is from: what could is taken out.
"""

# ruff: noqa: PLC0415 - drawing is loaded only when something is drawn, so that every command starts fast

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest

import msgspec
from msgspec import Struct

from tarazu.cli.errors import CommandError, UsageError
from tarazu.cli.streams import give_output_up

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Characters by which a text could drive the terminal, or show its words in another order than they are in."""
_SURROGATES = re.compile(r"[\ud800-\udfff]")

GAP = 2
"""Spaces between two columns."""
FOLDED_WIDTH_MIN = 12
"""A text is not folded into a column that is narrower, where it has words enough."""
INDENT = 2


class Column(Struct, frozen=True):
    """One column of a table. A `whole` one is never folded, nor is a `number`, which stands on the right."""

    heading: str
    whole: bool = False
    number: bool = False

    @property
    def folds(self) -> bool:
        """Tell whether what is in it may go on in the next line."""
        return not (self.whole or self.number)


def say(text: str = "") -> None:
    """Print a line to standard output, at once."""
    _write(f"{printable(text)}\n")


def say_aside(text: str) -> None:
    """Print a line to standard error: what is not the command's result. Where nothing can be written it is given up."""
    try:
        sys.stderr.write(f"{printable(text)}\n")
        sys.stderr.flush()
    except OSError:
        pass  # there is no place left to tell it


@contextmanager
def shown_once(problem: str, advice: str) -> Iterator[None]:
    """Print something that nothing shows again. Where that fails, say on standard error what has been made, and how on.

    Raises:
        CommandError: the output took nothing more, or its reader has gone.
    """
    try:
        yield
    except OSError as error:
        give_output_up()
        raise CommandError(f"{problem}, but could not be shown: {error.strerror}.", advice) from None


def print_json(document: object) -> None:
    """Print one JSON document, indented when a person looks on."""
    text = msgspec.json.encode(document)
    print_json_text((msgspec.json.format(text, indent=INDENT) if sys.stdout.isatty() else text).decode())


def print_json_text(text: str) -> None:
    """Print JSON as it is, but for characters that could drive a terminal: they are written in JSON's own way."""
    _write(_CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n")


def print_table(columns: Sequence[Column], rows: Iterable[Sequence[object]]) -> None:
    """Print rows under headings; numbers get their thousands apart.

    Where a terminal is too narrow, texts are folded at their spaces. Where that does not do, each row is printed as
    `print_fields` does: a figure or an id is never cut.
    """
    headings = [_cell(column.heading.upper()) for column in columns]
    cells = [[_cell(value) for value in row] for row in rows]
    widths = _widths(columns, [headings, *cells], _terminal_width())
    if widths is None:
        for number, row in enumerate(cells):
            if number:
                say()
            _print_pairs([(heading, text) for heading, text in zip(headings, row, strict=True) if text])
        return
    lines = list(map(_bold, _row_lines(columns, headings, widths)))
    for row in cells:
        lines += _row_lines(columns, row, widths)
    _write("".join(f"{line}\n" for line in lines))


def print_fields(fields: Iterable[tuple[str, object]]) -> None:
    """Print one thing, a field a line."""
    _print_pairs([(_cell(name), _cell(value)) for name, value in fields])


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
        return Confirm.ask(Text(printable(question)), console=Console(stderr=True), default=False)
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
    """Take out the characters by which a text from elsewhere could drive the terminal; lines and tabs stay."""
    return _CONTROLS.sub("", text)


def unicode_text(text: str, what: str) -> str:
    """Refuse what the shell handed on as bytes that are no text.

    Raises:
        UsageError: `what` is no Unicode text.
    """
    if _SURROGATES.search(text):
        raise UsageError(f"{what} is no Unicode text.", "Send text in UTF-8.")
    return text


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _cell(value: object) -> str:
    return " ".join(printable(shown(value)).split())


def _print_pairs(pairs: Sequence[tuple[str, str]]) -> None:
    """Print names and texts in two columns. A word that does not fit beside its name is the terminal's to wrap."""
    name_width = max((_width(name) for name, _ in pairs), default=0) + GAP
    terminal_width = _terminal_width()
    text_width = None if terminal_width is None else terminal_width - name_width
    lines = []
    for name, text in pairs:
        first, *others = _folded(text, text_width)
        lines.append(f"{_bold(name)}{' ' * (name_width - _width(name))}{first}".rstrip())
        lines += [f"{' ' * name_width}{other}" for other in others]
    _write("".join(f"{line}\n" for line in lines))


def _widths(columns: Sequence[Column], rows: Sequence[Sequence[str]], terminal_width: int | None) -> list[int] | None:
    """Tell how wide each column is to be; None where they do not stand side by side without cutting something."""
    texts = list(zip(*rows, strict=True))
    widths = [max(map(_width, column)) for column in texts]
    if terminal_width is None:
        return widths
    least = [
        min(width, max(FOLDED_WIDTH_MIN, *map(_longest_word, column))) if kind.folds else width
        for kind, width, column in zip(columns, widths, texts, strict=True)
    ]
    room = terminal_width - GAP * (len(columns) - 1)
    if sum(least) > room:
        return None
    while sum(widths) > room:
        widths[max(_that_can_be_narrower(widths, least), key=widths.__getitem__)] -= 1
    return widths


def _that_can_be_narrower(widths: Sequence[int], least: Sequence[int]) -> list[int]:
    return [place for place, width in enumerate(widths) if width > least[place]]


def _longest_word(text: str) -> int:
    return max(map(_width, text.split()), default=0)


def _row_lines(columns: Sequence[Column], row: Sequence[str], widths: Sequence[int]) -> list[str]:
    folded = [_folded(text, width if of.folds else None) for of, text, width in zip(columns, row, widths, strict=True)]
    return [
        (" " * GAP).join(map(_padded, columns, parts, widths)).rstrip() for parts in zip_longest(*folded, fillvalue="")
    ]


def _padded(column: Column, text: str, width: int) -> str:
    space = " " * (width - _width(text))
    return f"{space}{text}" if column.number else f"{text}{space}"


def _folded(text: str, width: int | None) -> list[str]:
    """Cut a text at its spaces into lines of at most this width; a longer word has a line of its own."""
    if width is None or _width(text) <= width:
        return [text]
    lines: list[str] = []
    line = ""
    for word in text.split():
        longer = f"{line} {word}" if line else word
        if line and _width(longer) > width:
            lines.append(line)
            line = word
        else:
            line = longer
    return [*lines, line]


def _width(text: str) -> int:
    """Tell how many places of a terminal a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _terminal_width() -> int | None:
    """Tell how many places a line of the terminal has; None in a pipe or a file, where nothing is folded."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _bold(text: str) -> str:
    is_plain = not sys.stdout.isatty() or os.environ.get("TERM", "dumb") == "dumb"
    return text if is_plain else f"\x1b[1m{text}\x1b[0m"
