"""The command's version."""

import subprocess
import sys
import tomllib
from pathlib import Path

from tests.support.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]


def test_version_is_the_one_in_pyproject() -> None:
    """`tarazu --version` prints the version that pyproject.toml states, and nothing else."""
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    command = Path(sys.executable).with_name("tarazu")
    ran = subprocess.run([command, "--version"], capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    assert (ran.stdout.strip(), ran.stderr) == (stated, "")
