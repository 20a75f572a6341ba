"""No pattern takes much longer for a text than to read it: what it repeats repeats nothing, or gives nothing back."""

import importlib
import pkgutil
import re
from collections.abc import Iterable, Iterator
from re import _constants, _parser
from typing import Any

import pytest

import tarazu

MANY = 32
"""A repetition of at least so many may be without end for all that matters here."""


def patterns() -> Iterator[tuple[str, "re.Pattern[Any]"]]:
    """List the patterns that modules keep, by themselves or in a table."""
    for module in pkgutil.walk_packages(tarazu.__path__, "tarazu."):
        if module.name.endswith("__main__") or ".migrations" in module.name:
            continue
        for name, value in vars(importlib.import_module(module.name)).items():
            for found in _found_in(value):
                yield f"{module.name}.{name}", found


def _found_in(value: object) -> Iterable["re.Pattern[Any]"]:
    if isinstance(value, re.Pattern):
        return [value]
    if isinstance(value, dict):
        value = tuple(value.values())
    return [each for each in value if isinstance(each, re.Pattern)] if isinstance(value, tuple | list) else []


def repeats_a_repetition(parts: Any, *, is_inside: bool = False) -> bool:
    """Tell whether a repetition that may give back stands in another one: a text can be shared out in many ways."""
    for kind, argument in parts:
        if kind in {_constants.MAX_REPEAT, _constants.MIN_REPEAT}:
            is_long = argument[1] >= MANY
            if (is_inside and is_long) or repeats_a_repetition(argument[2], is_inside=is_inside or is_long):
                return True
        elif kind is _constants.POSSESSIVE_REPEAT:
            if repeats_a_repetition(argument[2], is_inside=is_inside or argument[1] >= MANY):
                return True
        elif any(repeats_a_repetition(inner, is_inside=is_inside) for inner in _inner(argument)):
            return True
    return False


def _inner(argument: Any) -> Iterator[Any]:
    """Find the patterns that a part of one is made of: a group, the branches of a choice, what is looked ahead for."""
    if isinstance(argument, _parser.SubPattern):
        yield argument
    elif isinstance(argument, tuple | list):
        for each in argument:
            yield from _inner(each)


@pytest.mark.parametrize(
    ("pattern", "is_slow"),
    [
        (r"(?: *; *(?:a)?)*x", True),
        (r"(?:a+)+b", True),
        (r"(?:[^,]{1,64},?)*", True),
        (r"(?: *+; *+(?:a)?+)*+x", False),
        (r"(?:ab?c)*d{1,3}", False),
        (r"[a-z]+=[0-9]*", False),
    ],
)
def test_a_slow_pattern_is_known_by_its_form(pattern: str, *, is_slow: bool) -> None:
    """What can be shared out in many ways is found, also behind white space, in groups and in choices."""
    assert repeats_a_repetition(_parser.parse(pattern)) is is_slow


def test_no_pattern_repeats_a_repetition() -> None:
    """Whatever is sent, written or typed is looked through once."""
    found = dict(patterns())
    assert len(found) > 20, "the patterns are somewhere else"
    slow = {
        name for name, pattern in found.items() if repeats_a_repetition(_parser.parse(pattern.pattern, pattern.flags))
    }
    assert not slow, slow
