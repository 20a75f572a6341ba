"""The command's version: the release, and in a clone its commit."""

import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

from tarazu.cli.release import release
from tests.support.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]


def test_version_is_the_one_in_pyproject() -> None:
    """`tarazu --version` prints the version that pyproject.toml states, with the commit of this clone."""
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    command = Path(sys.executable).with_name("tarazu")
    ran = subprocess.run([command, "--version"], capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    assert ran.stdout.startswith(stated)
    assert (ran.stdout, ran.stderr) == (f"{release()}\n", "")


HASH = "5a2c2c8d1f0e4b7a9c3d5e6f708192a3b4c5d6e7"


@pytest.mark.parametrize("form", ["branch", "packed", "detached", "worktree"])
def test_a_clone_tells_its_commit(tmp_path: Path, form: str) -> None:
    """However Git keeps it; Git itself is not asked."""
    git, name = tmp_path / ".git", "refs/heads/main"
    (git / "refs" / "heads").mkdir(parents=True)
    (git / "HEAD").write_text(HASH if form == "detached" else f"ref: {name}\n")
    if form == "packed":
        (git / "packed-refs").write_text(f"# pack-refs with: peeled\n{HASH[::-1]} refs/heads/other\n{HASH} {name}\n")
    else:
        (git / name).write_text(f"{HASH}\n")
    folder = tmp_path
    if form == "worktree":
        own, folder = git / "worktrees" / "tree", tmp_path / "tree"
        own.mkdir(parents=True)
        folder.mkdir()
        (own / "HEAD").write_text(f"ref: {name}\n")
        (own / "commondir").write_text("../..\n")
        (folder / ".git").write_text(f"gitdir: {own}\n")
    assert release(folder) == f"{version('tarazu')} (commit {HASH[:12]})"


@pytest.mark.parametrize("head", [None, b"\xff", b"ref: refs/heads/none"])
def test_without_a_commit_the_release_is_told(tmp_path: Path, head: bytes | None) -> None:
    """Where the package is installed there is none; a broken clone fails nothing."""
    if head is not None:
        (tmp_path / ".git").mkdir()
        (tmp_path / ".git" / "HEAD").write_bytes(head)
    assert release(tmp_path) == version("tarazu")
