"""docs/logs.md, held to the code: every event with its levels and its fields, and no other."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tarazu.service import log_lines, log_sums

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "logs.md").read_text("utf-8")
EVENT = re.compile(r"[a-z]+(_[a-z]+)*")
LEVELS = {"debug", "info", "warning", "error", "critical"}
IN_WORDS = {"request", "library_message"}
"""Events whose fields, or levels, the page tells in words."""


def rows() -> dict[str, tuple[set[str], set[str]]]:
    """Read the levels and fields of each event from the page."""
    found = re.findall(r"^\| `(\w+)` \| ([a-z ,]+) \|(.*?)\| .+ \|$", PAGE, re.MULTILINE)
    return {event: (set(levels.split(", ")), set(re.findall(r"`(\w+)`", fields))) for event, levels, fields in found}


@cache
def sources() -> list[ast.Module]:
    """Parse the code of the product."""
    return [ast.parse(file.read_text("utf-8")) for file in sorted((ROOT / "src").rglob("*.py"))]


def calls() -> Iterator[tuple[ast.Call, str | None]]:
    """Go through what may write an event, with its level where that is plain."""
    for tree in sources():
        for node in ast.walk(tree):
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id="log"), attr=level)):
                    yield node, level if level in LEVELS else None
                case ast.Call(func=ast.Name(id="say")):
                    yield node, None


def events_of(call: ast.Call) -> set[str]:
    """List the events that a call may write: its first words, or one of two."""
    either = ([each.body, each.orelse] if isinstance(each, ast.IfExp) else [each] for each in call.args)
    words = {
        each.value for some in either for each in some if isinstance(each, ast.Constant) and isinstance(each.value, str)
    }
    return {word for word in words if EVENT.fullmatch(word)}


def test_every_event_of_the_code_is_on_the_page_with_its_level_and_its_fields() -> None:
    """What the code writes by name."""
    page = rows()
    levels: dict[str, set[str]] = defaultdict(set)
    for call, level in calls():
        for event in events_of(call):
            assert event in page, event
            if event not in IN_WORDS:
                fields = {keyword.arg for keyword in call.keywords if keyword.arg} - {"request_id"}
                assert fields <= page[event][1], event
            if level is not None:
                levels[event].add(level)
    assert {event: found for event, found in levels.items() if found != page[event][0]} == {}


def test_no_line_has_what_python_writes_for_its_own() -> None:
    """An error or a value is told in words: no `repr` stands in a line."""
    for call, _ in calls():
        for keyword in call.keywords:
            for node in ast.walk(keyword.value):
                assert not (isinstance(node, ast.Call) and ast.unparse(node.func) == "repr"), ast.unparse(call)
                assert not (isinstance(node, ast.FormattedValue) and node.conversion == ord("r")), ast.unparse(call)


def test_every_event_of_the_page_is_in_the_code() -> None:
    """As a word of it."""
    words = {
        node.value
        for tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert rows().keys() <= words


def test_the_page_has_the_bounds_of_the_log() -> None:
    """As they are in force."""
    assert f"a queue of {log_lines.LINES_MAX:,} lines" in PAGE
    assert f"at most {log_lines.LINE_BYTES_MAX:,} bytes" in PAGE
    assert f"what waits for {log_lines.DRAIN_S:g} s at most" in PAGE
    assert f"the first {log_sums.PASS_MAX} in {log_sums.SUM_S:g} s" in PAGE
