"""Find the line of every table and key in a TOML text, which the standard library's parser does not tell."""

import re
import tomllib

KeyPath = tuple[str | int, ...]
"""The way to a setting: names, and places (from 0) in lists of tables."""

_NAME = r"""(?: "(?:\\.|[^"\\\n])*+" | '[^'\n]*+' | [A-Za-z0-9_-]++ )"""
# Possessive, since no part of a comment may be given back to be read as a key.
_STATEMENT = re.compile(
    rf"\s*+ (?:\#[^\n]*+\s*+)*+ (?P<brackets>\[{{0,2}}) [ \t]*+ (?P<key>{_NAME} (?:[ \t]*+\.[ \t]*+{_NAME})*+)",
    re.VERBOSE,
)
_REST = re.compile(
    r'''
    """(?:\\.|[^\\])*?"{3,5}     # a text of many lines may end in up to two quotes of its own
    | \'\'\'.*?\'{3,5}
    | "(?:\\.|[^"\\\n])*" | '[^'\n]*'
    | \#[^\n]*
    | [\[{] | [\]}] | \n
    | [^"'\#\[\]{}\n]+
    ''',
    re.VERBOSE | re.DOTALL,
)


def find_lines(text: str) -> dict[KeyPath, int]:
    """Map each table and key to the line, counted from 1, on which it first stands. `text` must be valid TOML.

    Keys inside an inline table or list are not found; the key that holds it is.
    """
    lines: dict[KeyPath, int] = {}
    places: dict[KeyPath, int] = {}
    table: KeyPath = ()
    line, position = 1, 0
    while statement := _STATEMENT.match(text, position):
        key_start = statement.start("key")
        line += text.count("\n", position, key_start)
        names = _names(statement["key"])
        if statement["brackets"]:
            found = table = _table_path(names, places, in_list=statement["brackets"] == "[[")
        else:
            found = (*table, *names)
        for length in range(1, len(found) + 1):
            lines.setdefault(found[:length], line)
        # The rest begins with the closing brackets of a header, or with the value.
        end = _end_of_statement(text, statement.end(), depth=len(statement["brackets"]))
        line += text.count("\n", key_start, end)
        position = end
    return lines


def _names(key: str) -> list[str]:
    """Take a dotted key apart; the standard parser undoes the quotes and escapes."""
    names = []
    value: object = tomllib.loads(f"{key} = 0")
    while isinstance(value, dict):
        ((name, value),) = value.items()
        names.append(name)
    return names


def _table_path(names: list[str], places: dict[KeyPath, int], *, in_list: bool) -> KeyPath:
    """Resolve a header. A name of a list of tables means its last table; `[[...]]` begins the next one."""
    path: KeyPath = ()
    for name in names[:-1]:
        path = _last_table((*path, name), places)
    path = (*path, names[-1])
    if in_list:
        places[path] = places.get(path, -1) + 1
    return _last_table(path, places)


def _last_table(path: KeyPath, places: dict[KeyPath, int]) -> KeyPath:
    return (*path, places[path]) if path in places else path


def _end_of_statement(text: str, position: int, depth: int) -> int:
    """Find the end of the line on which no text, list or inline table is open any more."""
    for token in _REST.finditer(text, position):
        match token[0]:
            case "[" | "{":
                depth += 1
            case "]" | "}":
                depth -= 1
            case "\n" if depth <= 0:
                return token.end()
            case _:
                pass
    return len(text)
