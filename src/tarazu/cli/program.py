"""Write commands of this program so that a person can paste them into the shell that called it."""

import shlex
import shutil
import sys
from pathlib import Path


def command_line(arguments: str, config: Path | None = None) -> str:
    """Write `arguments` as a whole command, with the configuration that was named when there was one."""
    option = "" if config is None else f" --config {shlex.quote(str(config))}"
    return f"{_program()} {arguments}{option}"


def _program() -> str:
    """Tell how this program was called: by its name if the shell finds it so, else by its path."""
    program = Path(sys.argv[0])
    if program.name == "__main__.py":
        return f"{shlex.quote(sys.executable)} -m tarazu"
    found = shutil.which(program.name)
    is_found = found is not None and Path(found).resolve() == program.resolve()
    return shlex.quote(program.name if is_found else str(program))
