"""Style, types and layers: checked as tests, so that they run beside the others and fail like them."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
COMMANDS = {
    "types": ("mypy",),
    "style": ("ruff", "check"),
    "format": ("ruff", "format", "--check"),
    "layers": ("lint-imports", "--no-logo"),
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_the_code_passes(command: tuple[str, ...]) -> None:
    """The checker has nothing against it."""
    program = Path(sys.executable).with_name(command[0])
    checked = subprocess.run([program, *command[1:]], cwd=ROOT, capture_output=True, text=True, check=False)
    if checked.returncode:
        pytest.fail(checked.stdout + checked.stderr, pytrace=False)
