"""Options that several commands share, and how their values are read."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, get_args

import msgspec
from cyclopts import App, Group, Parameter, Token

from tarazu.cli.durations import duration_s
from tarazu.cli.errors import UsageError
from tarazu.domain.numbers import read_number

DEFAULT_URL = "http://127.0.0.1:8080"
"""Where `tarazu serve` answers when nothing else is said."""

ConfigPath = Annotated[
    Path | None,
    Parameter(
        name="--config",
        metavar="FILE",
        help="The configuration; without it $TARAZU_CONFIG, else ./tarazu.toml, else the built-in demo catalogue.",
    ),
]
AsJson = Annotated[
    bool, Parameter(name="--json", negative=(), show_default=False, help="Print one JSON document, for programs.")
]
NoSecondFactor = Annotated[
    bool,
    Parameter(
        name="--no-second-factor",
        negative=(),
        show_default=False,
        help="Take the second factor away, for who has lost it: the password alone opens the pages.",
    ),
]

OPTIONS = Group("Options")


def command_group(name: str, purpose: str) -> App:
    """Make a command that only holds others."""
    return App(name=name, help=purpose, group_parameters=OPTIONS)


def duration_option(name: str, description: str, *, least_s: int = 0) -> Parameter:
    """Make an option that takes a duration; the command gets whole seconds."""

    def read(_type: Any, tokens: Sequence[Token]) -> int:
        seconds = duration_s(tokens[0].value)
        if seconds < least_s:
            raise ValueError(f"expected at least {least_s}s, got {tokens[0].value}")
        return seconds

    return Parameter(name=name, converter=read, metavar="DURATION", help=description)


def number_option(name: str, description: str, *, metavar: str = "N") -> Parameter:
    """Make an option that takes a whole number; 1.5 is refused, never rounded."""
    return Parameter(name=name, converter=whole_number, metavar=metavar, help=description)


def whole_number(_type: Any, tokens: Sequence[Token]) -> int:
    """Read one whole number."""
    text = tokens[0].value
    number = read_number(text)
    if number is None:
        raise ValueError(f"expected a whole number, got {text!r}")
    return number


def checked_setting(option: str, value: object, kind: Any) -> Any:
    """Hold an option to what the configuration allows of the same setting.

    Raises:
        UsageError: it allows no such value.
    """
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        meta = next(part for part in get_args(kind) if isinstance(part, msgspec.Meta))
        raise UsageError(f"{option}: expected {meta.description}, got {value!r}.") from None
