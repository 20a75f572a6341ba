"""docs/commands.md."""

import inspect
from functools import reduce
from pathlib import Path

import pytest

from tarazu.cli.app import whole_app
from tests.cli.commands_page import WIDTH, command_paths, commands_page

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"
COMMANDS = {
    "": ["audit", "chat", "check", "drain", "openapi", "reload", "request", "serve"],
    "account": ["create", "invite", "list", "rename", "set", "show", "sign-out"],
    "admin": ["trail"],
    "admin operator": ["create", "invite", "list", "set"],
    "admin token": ["create", "list", "revoke"],
    "backend": ["list", "test"],
    "credit": ["add", "adjust", "history"],
    "db": ["backup", "restore", "upgrade"],
    "intake": ["resume", "status", "stop"],
    "key": ["create", "list", "pause", "replace", "resume", "revoke", "set"],
}
"""The commands that other programs rely on, by the words before them."""


@pytest.fixture(scope="module")
def page() -> str:
    """What the page has to be; to print the help of every command takes a second."""
    return commands_page()


def test_the_page_is_what_the_commands_print(page: str) -> None:
    """The page has every command's help word for word; if not: python -m tests.cli.commands_page > docs/commands.md."""
    assert PAGE.read_text() == page


def test_the_page_does_not_depend_on_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page is the same on a narrow, colourful terminal."""
    for name, value in (("COLUMNS", "40"), ("FORCE_COLOR", "1"), ("TERM", "xterm-256color")):
        monkeypatch.setenv(name, value)
    assert PAGE.read_text() == commands_page()


def test_the_commands_are_those_that_were_agreed() -> None:
    """There is every command that other programs rely on, and no other."""
    found: dict[str, list[str]] = {group: [] for group in COMMANDS}
    for path in command_paths(whole_app()):
        if " ".join(path) not in COMMANDS:
            found[" ".join(path[:-1])].append(path[-1])
    assert {group: sorted(names) for group, names in found.items()} == COMMANDS


@pytest.mark.parametrize("path", [path for path in command_paths(whole_app()) if " ".join(path) not in COMMANDS])
def test_every_command_shows_examples(path: tuple[str, ...], page: str) -> None:
    """The help of each command that does something has an example of it."""
    assert f"\n    {' '.join(('tarazu', *path))}" in page


def test_no_sentence_of_a_help_text_is_broken_twice() -> None:
    """The prose fits a terminal of 80 columns as it is written: what is wrapped again leaves words alone on a line."""
    commands = [reduce(lambda parent, name: parent[name], path, whole_app()) for path in command_paths(whole_app())]
    texts = [inspect.getdoc(command.default_command) or "" for command in commands]
    lines = [line for text in texts for line in text.splitlines() if not line.startswith(" ")]
    assert len(lines) >= 100
    assert [line for line in lines if len(line) > WIDTH] == []
