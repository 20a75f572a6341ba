"""A folder of its own for every test, with a catalogue in it, in which the commands run."""

import os
import sys
from pathlib import Path

import pytest

from tests.cli.commands import CATALOGUE, Commands
from tests.support.stores import SqliteStore


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Enter an empty folder, without the variables that commands read."""
    for name in os.environ:
        if name.startswith("TARAZU_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def tarazu(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, sqlite_store: SqliteStore
) -> Commands:
    """Run commands in this process, in a folder with a tarazu.toml and with books."""
    sqlite_store.new_books(folder)
    monkeypatch.setattr(sys, "argv", ["tarazu"])
    (folder / "tarazu.toml").write_text(CATALOGUE)
    return Commands(capsys)
