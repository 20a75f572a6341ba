"""The rows of the specification and of the decisions, and the tests that hold them.

Every table row, numbered rule and list item of the two pages is a row. Its id is made of the page, the section and
the row's own first words: `spec.codes.rate_limit_exceeded`, `decisions.order_of_checks.7`, `decisions.input.2`.
A test says which rows it holds with `@rows(...)`; they become part of its name.

`python -m tests.support.rows` writes docs/conformance.md anew.
"""

import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TypeVar

import pytest
from msgspec import Struct

ROOT = Path(__file__).parents[2]
PAGES = {"spec": ROOT / "docs/specification.md", "decisions": ROOT / "docs/decisions.md"}
CONFORMANCE = ROOT / "docs/conformance.md"
TESTS = ("tests/api", "tests/cli")
ROWS_WITHOUT_MEANING = ("spec.what_the_service_does",)
"""An introduction; what it says stands again in the tables."""
EXCERPT_LENGTH = 110

Test = TypeVar("Test", bound=Callable[..., object])


class Row(Struct, frozen=True):
    """One promise: its id, and its text."""

    id: str
    text: str


def rows(*ids: str) -> Callable[[Test], Test]:
    """Say which rows a test holds."""

    def mark(test: Test) -> Test:
        name = "+".join(ids)
        pytest.mark.parametrize("row", [name], ids=[name], indirect=True)(test)  # too long a name is not its own id
        pytest.mark.usefixtures("row")(test)
        return test

    return mark


def read_rows() -> list[Row]:
    """Read all rows of both pages, in their order."""
    return [row for page, path in PAGES.items() for row in _page_rows(page, path.read_text(encoding="utf-8"))]


@cache
def nodes_by_row() -> dict[str, list[str]]:
    """Collect the tests of the API and of the commands, and find the rows in their names."""
    collected = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:randomly", "-p", "no:xdist", *TESTS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    tests: dict[str, list[str]] = defaultdict(list)
    for line in collected.stdout.splitlines():
        if "::" not in line:
            continue
        node = line.strip()
        for id_ in re.findall(r"(?:spec|decisions)\.[a-z_0-9.]+", node.partition("[")[2]):
            if node not in tests[id_]:
                tests[id_].append(node)
    return tests


def conformance_page() -> str:
    """Write the page that maps each row to its tests."""
    tests = nodes_by_row()
    lines = [
        "# Which test holds which row",
        "",
        "Every row of [specification.md](specification.md) and [decisions.md](decisions.md), and the black-box tests,",
        "over real HTTP or by commands, that hold it. `python -m tests.support.rows` writes this page;",
        "`tests/test_conformance.py` fails when it is not current, or when a row has no test.",
    ]
    section = ""
    for row in read_rows():
        page_and_section = row.id.rsplit(".", 1)[0] if row.id.count(".") == 2 else ".".join(row.id.split(".")[:2])
        if page_and_section != section:
            section = page_and_section
            lines += ["", f"## {section}", "", "| row | says | tests |", "| --- | --- | --- |"]
        names = sorted({_short(node) for node in tests.get(row.id, [])})
        cell = "<br>".join(f"`{name}`" for name in names)
        lines.append(f"| `{row.id}` | {_excerpt(row.text)} | {cell} |")
    return "\n".join(lines) + "\n"


def _page_rows(page: str, text: str) -> Iterator[Row]:
    section, items, header = "", 0, True
    for line in _joined(text.splitlines()):
        if line.startswith("#"):
            section, items, header = _slug(line.lstrip("# ").split(" (")[0].split(" on ")[0].split(":")[0]), 0, True
        elif line.startswith("|"):
            if set(line) <= set("|- :"):
                header = False
            elif not header:
                cells = [cell.strip() for cell in line.strip("|").split("|")]
                first = cells[1] if section == "codes" else cells[0]
                yield Row(f"{page}.{section}.{_slug(first)}", " · ".join(filter(None, cells)))
        else:
            header = True
            item = re.match(r"(?:- |\d+\. )(.*)", line)
            if item is not None and f"{page}.{section}" not in ROWS_WITHOUT_MEANING and "not shown" not in line:
                items += 1
                yield Row(f"{page}.{section}.{'rule_' if page == 'spec' else ''}{items}", item[1])


def _joined(lines: list[str]) -> Iterator[str]:
    """Put the lines of one list item or paragraph together."""
    held = ""
    for line in lines:
        if held and line.startswith("  ") and line.strip():
            held += " " + line.strip()
            continue
        if held:
            yield held
        held = line
    if held:
        yield held


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "_", text.lower().replace("[]", "")).strip("_")


def _short(node: str) -> str:
    path, name = node.split("::", 1)
    return f"{Path(path).name}::{name.split('[')[0]}"


def _excerpt(text: str) -> str:
    flat = text.replace("|", "\\|")
    return flat if len(flat) <= EXCERPT_LENGTH else flat[: EXCERPT_LENGTH - 1].rstrip() + "…"


if __name__ == "__main__":
    CONFORMANCE.write_text(conformance_page(), encoding="utf-8")
