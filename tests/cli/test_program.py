"""Commands to paste name the program as the shell will find it."""

import shutil
import sys
from pathlib import Path

import pytest

from tarazu.cli.program import command_line


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
