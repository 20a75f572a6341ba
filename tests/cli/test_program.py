"""Commands to paste name the program as the shell will find it."""

import ast
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tarazu as tarazu_package
from tarazu.cli.app import COMMANDS
from tarazu.cli.program import _ADVISED, as_typed, command_line, name_configuration
from tests.cli.commands import CATALOGUE, Commands
from tests.cli.every_command import MAKING, WITH_BOOKS, WITHOUT_BOOKS

ADVISING = re.compile(rf"\btarazu (?:{'|'.join(COMMANDS)})\b")
WITHOUT_CONFIGURATION = frozenset({("openapi",), ("chat",)})
"""Commands that take none."""


def test_a_program_on_the_path_has_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the shell finds by its name is called by it."""
    monkeypatch.setattr(shutil, "which", lambda _name: "/opt/tarazu/bin/tarazu")
    monkeypatch.setattr(sys, "argv", ["/opt/tarazu/bin/tarazu"])
    assert command_line("account list") == "tarazu account list"


@pytest.mark.parametrize("found", [None, "/usr/bin/tarazu"])
def test_another_program_has_its_path(monkeypatch: pytest.MonkeyPatch, found: str | None) -> None:
    """What the shell would not find, or find another of, is called by its path."""
    monkeypatch.setattr(shutil, "which", lambda _name: found)
    monkeypatch.setattr(sys, "argv", [".venv/bin/tarazu"])
    assert command_line("chat") == ".venv/bin/tarazu chat"


def test_a_module_is_run_by_its_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was started as a module is started so again."""
    monkeypatch.setattr(sys, "argv", ["/src/tarazu/__main__.py"])
    monkeypatch.setattr(sys, "executable", "/usr/bin/python3")
    assert command_line("chat") == "/usr/bin/python3 -m tarazu chat"


def test_odd_paths_are_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spaces in a path do not break what is pasted, and a named configuration comes along."""
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    monkeypatch.setattr(sys, "argv", ["my tools/tarazu"])
    assert command_line("check", Path("my files/t.toml")) == "'my tools/tarazu' check --config 'my files/t.toml'"


def test_what_others_advise_is_written_for_this_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the program's own name and the configuration that was given, on each line; once is enough."""
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    monkeypatch.setattr(sys, "argv", ["bin/tarazu"])
    text = "None. Make them with: tarazu db upgrade\nThe books are here.\nStart it with: tarazu serve --port 1"
    name_configuration(Path("a b.toml"))
    try:
        expected = (
            "None. Make them with: bin/tarazu db upgrade --config 'a b.toml'\n"
            "The books are here.\nStart it with: bin/tarazu serve --port 1 --config 'a b.toml'"
        )
        assert as_typed(text) == as_typed(expected) == expected
        monkeypatch.setattr(sys, "argv", ["tarazu"])
        monkeypatch.setattr(shutil, "which", lambda _name: "tarazu")
        assert as_typed(as_typed(text)) == as_typed(text)
    finally:
        name_configuration(None)


def _texts() -> Iterator[tuple[str, str]]:
    """Read the texts of the code below the commands that name a command, with the places of what is filled in."""
    root = Path(tarazu_package.__file__).parent
    for folder in ("service", "store", "domain", "backends"):
        for file in (root / folder).rglob("*.py"):
            tree = ast.parse(file.read_text())
            documented = {
                id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)
            }  # a docstring is an expression by itself
            filled = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
            for node in ast.walk(tree):
                if id(node) in documented or id(node) in filled:
                    continue
                if isinstance(node, ast.JoinedStr):
                    parts = (part.value if isinstance(part, ast.Constant) else "VALUE" for part in node.values)
                    text = "".join(map(str, parts))
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    text = node.value
                else:
                    continue
                if ADVISING.search(text):
                    yield f"{file.relative_to(root)}:{node.lineno}", text


def test_each_command_that_is_advised_below_the_commands_stands_where_it_is_found() -> None:
    """At the end of its text, behind "with: ": there the commands add the configuration that they were given."""
    texts = list(_texts())
    assert len(texts) > 9
    for place, text in texts:
        assert len(_ADVISED.findall(text)) == len(ADVISING.findall(text)), (place, text)


@pytest.mark.parametrize("broken", ["no books", "nothing there", "no configuration"])
def test_each_command_in_an_error_has_the_configuration(tarazu: Commands, folder: Path, broken: str) -> None:
    """Whatever is wrong, and whichever command says so: what it advises is about the same books."""
    (folder / "tarazu.toml").rename(folder / "other.toml")
    if broken == "no books":
        (folder / "tarazu.db").unlink()
    if broken == "no configuration":
        (folder / "other.toml").write_text(CATALOGUE + "[oddity]\n")
    advised = 0
    commands = {**WITH_BOOKS, **WITHOUT_BOOKS, ("serve",): (), ("db", "restore"): ("none.db", "--yes")}
    assert commands.keys() >= MAKING - {("db", "upgrade")}
    for path, arguments in commands.items():
        if path in WITHOUT_CONFIGURATION or (path == ("serve",) and broken != "no configuration"):
            continue
        ran = tarazu(*path, *arguments, "--config", "other.toml")
        for line in ran.err.splitlines():
            if ADVISING.search(line) and "See how it is used" not in line:
                advised += 1
                assert " --config other.toml" in line, (path, line)
    assert advised > 5


def test_the_warnings_of_the_check_have_the_configuration(tarazu: Commands, folder: Path) -> None:
    """For people and for programs."""
    tarazu.account("--plan", "large")
    (folder / "other.toml").write_text(CATALOGUE.replace("[plans.large]", "[plans.larger]"))
    expected = "tarazu account set ID --plan PLAN --config other.toml"
    assert tarazu("check", "--config", "other.toml").out.endswith(f"{expected}\n")
    assert tarazu.json("check", "--config", "other.toml")["warnings"][-1].endswith(expected)
