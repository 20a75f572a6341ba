"""What is wrong with a configuration: every problem is collected, with its file, line, key and reason."""

import difflib
import json
import re
from collections.abc import Iterable

from msgspec import Struct

from tarazu.service.configuration.lines import KeyPath, find_lines

SHOWN_CHARACTERS_MAX = 60
SHOWN_INTEGER_MAX = 10**18
SHOWN_ITEMS_MAX = 5
LIKENESS_MIN = 0.7
"""How alike two names must be, as difflib counts it, for one to be a slip of the other."""

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


class Problem(Struct, frozen=True):
    """One thing to put right. `line` counts from 1; `line` and `key` are None where there is none to name."""

    file: str
    line: int | None
    key: str | None
    reason: str

    def __str__(self) -> str:
        """Write it on one line, the way compilers do: tarazu.toml:12: plans.pro.models: reason."""
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.reason}" if self.key is None else f"{place}: {self.key}: {self.reason}"


class ConfigurationError(Exception):
    """The configuration is not usable. Its text is one line per problem and holds no secret."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__(problems)
        self.problems = problems

    def __str__(self) -> str:
        return "\n".join(map(str, self.problems))


class Findings:
    """The problems found so far in one file."""

    def __init__(self, file: str, text: str) -> None:
        self._file = file
        self._text = text
        self._reasons: dict[KeyPath, str] = {}
        self._of_variables: list[Problem] = []

    def add(self, key: KeyPath, reason: str) -> None:
        """Note what is wrong with a setting. The first reason stays: later ones only follow from it."""
        self._reasons.setdefault(key, reason)

    def add_variable(self, name: str, reason: str) -> None:
        """Note what is wrong with an environment variable that stands above the file."""
        self._of_variables.append(Problem(name, None, None, reason))

    def raise_if_any(self) -> None:
        """Raise ConfigurationError with all problems, in the order of the file's lines, if there is any."""
        if not self._reasons and not self._of_variables:
            return
        lines = find_lines(self._text)
        problems = [
            Problem(self._file, _nearest_line(lines, key), dotted(key) or None, reason)
            for key, reason in self._reasons.items()
        ]
        problems.sort(key=lambda problem: problem.line or 0)
        raise ConfigurationError((*self._of_variables, *problems))


def dotted(key: KeyPath) -> str:
    """Write a key as TOML does, `models."openai/gpt-4o".credits`, with places in a list as `[0]`."""
    text = ""
    for part in key:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += ("." if text else "") + quoted_key(part)
    return text


def quoted_key(name: str) -> str:
    """Write one name of a key, in quotes where TOML wants them."""
    return name if _BARE_KEY.fullmatch(name) else _quoted(name)


def shown(value: object) -> str:
    """Write a value of the file for people, on one line and in bounded length."""
    match value:
        case bool():
            text = "true" if value else "false"
        case str():
            text = _quoted(_shortened(value))
        case int() if abs(value) > SHOWN_INTEGER_MAX:
            text = "a huge integer"
        case int() | float():
            text = str(value)
        case list():
            text = f"[{', '.join(map(_shown_inside, value[:SHOWN_ITEMS_MAX]))}]"
        case dict():
            text = "a table"
        case _:
            text = "a date or time"
    return text


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """Find the known name that was probably meant; case does not matter."""
    by_folded = {candidate.casefold(): candidate for candidate in known}
    matches = difflib.get_close_matches(name.casefold(), by_folded, n=1, cutoff=LIKENESS_MIN)
    return by_folded[matches[0]] if matches else None


def listed(names: Iterable[str]) -> str:
    """Write names as people do: `a, b and c`."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def _shown_inside(item: object) -> str:
    return "a list" if isinstance(item, list) else shown(item)


def _quoted(text: str) -> str:
    """Write a text as TOML does, with escapes for whatever could break the line or steer a terminal."""
    escaped = json.dumps(text, ensure_ascii=False)
    return "".join(character if character.isprintable() else f"\\u{ord(character):04x}" for character in escaped)


def _shortened(text: str) -> str:
    return text if len(text) <= SHOWN_CHARACTERS_MAX else text[: SHOWN_CHARACTERS_MAX - 1] + "…"


def _nearest_line(lines: dict[KeyPath, int], key: KeyPath) -> int | None:
    """Find the line of a key, or of the closest table around it when the key is missing or inside a value."""
    while key:
        if key in lines:
            return lines[key]
        key = key[:-1]
    return None
