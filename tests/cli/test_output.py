"""What is printed: tables that cut nothing, and no text that can drive a terminal."""

import os
import pty
import re
import select
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.cli import output
from tarazu.cli.output import Column, print_fields, print_json, print_table, say, say_aside
from tests.cli.commands import COMMAND, Commands, clean_environ
from tests.cli.every_command import WITH_BOOKS, WITHOUT_BOOKS
from tests.support.patience import PATIENCE_S

WIDTHS = (40, 80)
"""Of a telephone and of a terminal as it is by default."""
NARROW = (1, 20, *WIDTHS, 200)
DANGEROUS = [
    *map(chr, (*range(9), *range(0x0B, 0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)))
]
"""Characters that drive a terminal or turn the order of what is shown."""
WORD = re.compile(r"\S+")


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Print as to a terminal, whose width is set by COLUMNS."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(output, "_terminal_width", lambda: int(os.environ["COLUMNS"]))
    return monkeypatch


WORDS = st.lists(st.text("abc،سلام好e\u0301", min_size=1, max_size=30), max_size=6).map(" ".join)
KINDS = st.builds(
    lambda heading, kind: Column(heading, **kind),
    WORDS.filter(bool),
    st.sampled_from(({}, {"whole": True}, {"number": True})),
)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[Column], list[list[object]]]:
    """Draw columns and rows of texts and figures."""
    columns = draw(st.lists(KINDS, min_size=1, max_size=8))
    row = st.tuples(*(st.integers(0, 10**15) if column.number else WORDS for column in columns)).map(list)
    return columns, draw(st.lists(row, max_size=4))


@given(tables(), st.sampled_from(NARROW))
def test_no_word_and_no_figure_is_cut(table: tuple[list[Column], list[list[object]]], width: int) -> None:
    """Whatever the terminal's width: every word of every cell, and every figure, is there whole, in its order."""
    columns, rows = table
    printed = _printed(columns, rows, width)
    words = [word for row in rows for value in row for word in WORD.findall(output.shown(value))]
    found = WORD.findall(printed)
    for word in words:
        assert word in found
        found.remove(word)


@given(tables(), st.sampled_from(WIDTHS))
def test_no_line_is_longer_than_it_must_be(table: tuple[list[Column], list[list[object]]], width: int) -> None:
    """A line that is wider than the terminal has one word beside its heading, which the terminal may wrap itself."""
    columns, rows = table
    heading = max(output._width(column.heading.upper()) for column in columns)
    longest = max((output._width(w) for row in rows for v in row for w in output.shown(v).split()), default=0)
    for line in _printed(columns, rows, width).splitlines():
        assert output._width(line) <= max(width, heading + output.GAP + longest)


def _printed(columns: Sequence[Column], rows: list[list[object]], width: int) -> str:
    written: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(output, "_terminal_width", lambda: width)
        patch.setattr(output, "_write", written.append)
        print_table(columns, rows)
    return "".join(written)


@pytest.fixture
def shop(tarazu: Commands) -> Commands:
    """Fill the books with what makes tables wide: long names, large figures."""
    account = tarazu.account("--email", f"{'a' * 40}@example.com", "--plan", "large")
    tarazu("account", "create", "--name", "A name of many words that takes more room than there is in a line of text")
    tarazu("credit", "add", account, "999999999999", "--reference", "invoice of the month of December with a long name")
    tarazu("credit", "adjust", account, "-1234567", "--reason", "paid twice")
    for name in ("laptop", "the key of the machine that builds everything in the night"):
        tarazu("key", "create", account, "--name", name, "--limit-per-minute", "1000000", "--expires", "90d")
    tarazu("admin", "operator", "create", "--email", "grace@example.com", "--name", "Grace Brewster Murray Hopper")
    tarazu("admin", "token", "create", "--name", "the shop's dashboard", "--scopes", "read,credits", "--expires", "9d")
    return tarazu


@pytest.mark.parametrize("width", WIDTHS)
def test_every_command_prints_figures_and_ids_whole(shop: Commands, terminal: pytest.MonkeyPatch, width: int) -> None:
    """In a terminal of 80 columns and of 40 it has all words that it prints to a pipe, where no width bounds them.

    But for headings of columns that are empty.
    """
    (account,) = [each["id"] for each in shop.json("account", "list") if each["email"]]
    key = shop.json("key", "list", account)[0]["id"]
    tried = 0
    for path, given_ in {**WITH_BOOKS, ("check",): WITHOUT_BOOKS[("check",)]}.items():
        if path[-1] not in {"list", "show", "history", "trail", "check", "audit", "status"}:
            continue  # it makes something, which would be another one the second time
        arguments = [
            account if part.startswith("acc_") else key if part.startswith("key_") else part for part in given_
        ]
        terminal.setattr(output, "_terminal_width", lambda: None)
        wide = shop(*path, *arguments)
        terminal.setattr(output, "_terminal_width", lambda: width)
        narrow = shop(*path, *arguments)
        assert wide.status == narrow.status == 0, path
        missing = set(WORD.findall(wide.out)) - set(WORD.findall(narrow.out))
        assert all(word.isupper() and word.isalpha() for word in missing), path  # the heading of what is empty
        tried += 1
    assert tried > 9


def test_a_real_terminal_of_40_columns(shop: Commands, folder: Path) -> None:
    """The command asks the terminal for its width, and prints one thing below another where a table does not fit."""
    ids = [each["id"] for each in shop.json("account", "list")]
    text = _in_terminal(folder, ("account", "list"), columns=40)
    assert [line.split()[-1] for line in text.splitlines() if re.match(r"(\x1b\[1m)?ID", line)] == ids
    assert "999,998,765,432" in text


def _in_terminal(folder: Path, arguments: tuple[str, ...], *, columns: int) -> str:
    """Run a command in a terminal of its own."""
    reader, terminal_end = pty.openpty()
    try:
        process = subprocess.Popen(
            ["/bin/sh", "-c", f'stty cols {columns}; exec "$0" "$@"', str(COMMAND), *arguments],
            stdin=terminal_end,
            stdout=terminal_end,
            stderr=terminal_end,
            cwd=folder,
            env=clean_environ(TERM="xterm"),
        )
        os.close(terminal_end)
        text = b""
        while select.select([reader], [], [], PATIENCE_S)[0]:
            try:
                text += os.read(reader, 65_536)
            except OSError:  # the last one on the other side has gone
                break
        assert process.wait(PATIENCE_S) == 0
    finally:
        os.close(reader)
    return text.decode()


def test_nothing_that_is_printed_drives_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever has written a text: lines, messages, tables, fields and JSON go out without such characters."""
    for character in DANGEROUS:
        text = f"a{character}[31mb"
        say(text)
        say_aside(text)
        print_table([Column(text), Column("n", number=True)], [[text, 1]])
        print_fields([(text, text)])
        print_json({text: text})
        captured = capsys.readouterr()
        assert character not in captured.out + captured.err
        assert captured.err == "a[31mb\n"


@given(st.text())
def test_json_loses_nothing(text: str) -> None:
    """What could drive a terminal is written in JSON's own way, so a program reads what was there."""
    import msgspec  # noqa: PLC0415 - beside its one use

    written: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(output, "_write", written.append)
        print_json({"text": text})
    assert msgspec.json.decode("".join(written)) == {"text": text}
