"""Write commands of this program so that a person can paste them into the shell that called it."""

import re
import shlex
import shutil
import sys
from contextvars import ContextVar
from pathlib import Path

_ADVISED = re.compile(r"(?<=with: )tarazu (?!.* --config )(?P<arguments>[a-z].*)$", re.MULTILINE)
"""How the layers below write a command at the end of a line, who know neither the program's name nor the option."""
_NAMED: ContextVar[Path | None] = ContextVar("named", default=None)


def command_line(arguments: str, config: Path | None = None) -> str:
    """Write `arguments` as a whole command, with the configuration that was named when there was one."""
    option = "" if config is None else f" --config {shlex.quote(str(config))}"
    return f"{_program()} {arguments}{option}"


def name_configuration(config: Path | None) -> None:
    """Remember which configuration this command was given, for `as_typed`."""
    _NAMED.set(config)


def as_typed(text: str) -> str:
    """Write each command that a text advises as a person would have to type it here, with the same configuration."""
    return _ADVISED.sub(lambda found: command_line(found["arguments"], _NAMED.get()), text)


def _program() -> str:
    """Tell how this program was called: by its name if the shell finds it so, else by its path."""
    program = Path(sys.argv[0])
    if program.name == "__main__.py":
        return f"{shlex.quote(sys.executable)} -m tarazu"
    found = shutil.which(program.name)
    is_found = found is not None and Path(found).resolve() == program.resolve()
    return shlex.quote(program.name if is_found else str(program))
