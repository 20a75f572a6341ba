"""tests/README.md: what it says of the tests is so in the files, and it leaves none of them out."""

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct

from tests.support.service import CATALOGUE

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests"
PAGE = TESTS / "README.md"
SUPPORT = TESTS / "support"
CODE = re.compile(r"`([^`]+)`")
FILES = [file for file in TESTS.rglob("*.py") if "node_modules" not in file.parts]
LEFT_OUT = {"nightly", "skip", "skipif", "xfail"}
"""Marks of tests that `make test` does not run, or not everywhere."""


class Claim(Struct, frozen=True):
    """One kind of claim: its test, the stores that it is made on, and the files that make it, the test's among them."""

    file: Path
    function: str
    stores: str
    files: tuple[Path, ...]

    @property
    def test(self) -> str:
        """The name of the test, as pytest has it."""
        return f"{self.file.relative_to(ROOT).as_posix()}::{self.function}"


def rows(heading: str) -> list[list[str]]:
    """List the cells of each row in the table under a heading, without its head."""
    under = PAGE.read_text("utf-8").partition(f"# {heading}\n")[2].partition("\n#")[0]
    lines = [line for line in under.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[2:]]


def claims() -> Iterator[Claim]:
    """Read the last table: names of files count from the folder that stands in bold above them."""
    folder = TESTS
    for claim, test, stores, others in rows("The kinds of claim"):
        if claim.startswith("**"):
            folder = ROOT / claim.strip("*")
            continue
        file, _, function = CODE.findall(test)[0].partition("::")
        found = [sorted(folder.glob(name)) for name in CODE.findall(others)]
        assert all(found), f"{folder}: {others}"
        yield Claim(folder / file, function, stores, (folder / file, *(each for files in found for each in files)))


@cache
def module(file: Path) -> ast.Module:
    """Parse a file, without importing it."""
    return ast.parse(file.read_text("utf-8"))


def functions(file: Path) -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    """List the functions of a file by their names."""
    return {node.name: node for node in module(file).body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def fixtures(file: Path) -> dict[str, str]:
    """Tell the scope of each fixture of a file."""
    return {
        name: next((ast.literal_eval(word.value) for word in _keywords(mark) if word.arg == "scope"), "function")
        for name, function in functions(file).items()
        for mark in function.decorator_list
        if ast.unparse(mark).startswith("pytest.fixture")
    }


def marks(claim: Claim) -> set[str]:
    """List all names in the marks of a claim's test: those above it, and those of its module."""
    of_module = (
        node.value
        for node in module(claim.file).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
    )
    names: set[str] = set()
    for mark in (*of_module, *functions(claim.file)[claim.function].decorator_list):
        for node in ast.walk(mark):
            match node:
                case ast.Name(id=name) | ast.Attribute(attr=name):
                    names.add(name)
                case ast.Call(args=[ast.Constant("store_kind"), ast.List(elts=[ast.Constant(str(kind))]), *_]):
                    names.add(f"{kind}_only")
    return names


def asked_for(claim: Claim) -> set[str]:
    """List the fixtures that a claim's test is given, and those that these are given, of the files around it."""
    places = [claim.file, *(folder / "conftest.py" for folder in claim.file.parents if folder.is_relative_to(TESTS))]
    known = [functions(place) for place in places if place.is_file()]
    asked: set[str] = set()
    ahead = [(name, 0) for name in _arguments(functions(claim.file)[claim.function])]
    while ahead:
        name, first = ahead.pop()
        asked.add(name)
        at = next((at for at in range(first, len(known)) if name in known[at]), None)
        if at is not None:  # a fixture that is given one of its own name has that of the next file
            ahead += [(given, at + 1 if given == name else 0) for given in _arguments(known[at][name])]
    return asked


def stores_of(claim: Claim) -> str:
    """Tell the stores that a claim is made on, in the page's words."""
    marked, asked = marks(claim), asked_for(claim)
    if "sqlite_only" in marked:
        return "SQLite"
    if ("store_kind" in asked and "both_stores" in marked) or {"param", "postgresql"} <= marked:
        return "both"
    starts_a_server = "restartable_server" in claim.file.read_text("utf-8")
    if starts_a_server or {"postgresql_only", "postgresql"} & marked or "postgresql_store" in asked:
        return "PostgreSQL"
    return "one" if "store_kind" in asked else "–"


def test_each_kind_of_claim_has_a_test_that_make_test_runs() -> None:
    """The test is there, and is not left for the night."""
    found = list(claims())
    assert len(found) >= 90
    assert [claim.test for claim in found if claim.function not in functions(claim.file)] == []
    assert [claim.test for claim in found if marks(claim) & LEFT_OUT] == []


def test_each_file_of_tests_makes_some_kind_of_claim() -> None:
    """A file that is added gets its place on the page, and one that is gone loses it."""
    named = {file for claim in claims() for file in claim.files}
    assert named == {file for file in FILES if file.name.startswith("test_")}


def test_the_stores_of_a_claim_are_told() -> None:
    """Those that the test is marked for."""
    told = {claim.test: claim.stores for claim in claims()}
    assert told == {claim.test: stores_of(claim) for claim in claims()}


def test_every_module_of_the_support_is_on_the_map() -> None:
    """Once, and none that is gone."""
    named = [name for cell, _ in rows("Map of tests/support") for name in CODE.findall(cell)]
    assert sorted(named) == sorted(file.stem for file in SUPPORT.glob("*.py") if file.stem != "__init__")


def test_every_shared_fixture_is_told_with_its_scope() -> None:
    """All fixtures of a conftest.py, and those of other files that are named."""
    told = {
        (name, scope, _place(place))
        for names, scope, places, _ in rows("The world of the shared fixtures")
        for name in CODE.findall(names)
        for place in CODE.findall(places)
    }
    files = {*(file for file in FILES if file.name == "conftest.py"), *(file for *_, file in told)}
    defined = {(name, scope, file) for file in files for name, scope in fixtures(file).items()}
    assert told <= defined
    assert {each for each in defined - told if each[2].name == "conftest.py"} == set()


def test_the_figures_of_the_catalogue_are_told() -> None:
    """Each plan with its quota, limit and models, each model with its price and time."""
    sold = tomllib.loads(CATALOGUE)
    plans = {f"`{name}`": plan for name, plan in sold["plans"].items()} | {"no plan": sold["payg"]}
    assert [row[:-1] for row in rows("Plans")] == [[name, *_figures(plan)] for name, plan in plans.items()]
    models = [[f"`{id_}`", f"{model['credits']:,}", f"{model['timeout_s']}"] for id_, model in sold["models"].items()]
    assert [row[:-1] for row in rows("Models")] == models


def test_what_grows_with_the_scale_is_told() -> None:
    """Each figure that a test multiplies with the scale."""
    told = {
        ROOT / CODE.findall(place)[0]: sorted(map(float, figures.split(", ")))
        for _, place, figures in rows("What grows with the scale")
    }
    scaled = {file: sorted(_scaled(file)) for file in FILES if file != SUPPORT / "scale.py"}
    assert told == {file: figures for file, figures in scaled.items() if figures}


def test_the_coverage_has_a_floor() -> None:
    """`make coverage` fails below it, branches included."""
    coverage = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["coverage"]
    assert coverage["run"]["branch"] is True
    assert coverage["report"]["fail_under"] >= 98


def _figures(plan: dict[str, Any]) -> list[str]:
    models = ", ".join(f"`{id_}`" for id_ in plan.get("models", ())) or "all"
    return [f"{plan.get('monthly_credits', 0):,}", f"{plan['requests_per_minute']:,}", models]


def _scaled(file: Path) -> list[float]:
    constants = {ast.unparse(node.targets[0]): node.value for node in module(file).body if isinstance(node, ast.Assign)}
    arguments = (
        node.args[0]
        for node in ast.walk(module(file))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "scaled"
    )
    return [ast.literal_eval(constants.get(ast.unparse(argument), argument)) for argument in arguments]


def _place(name: str) -> Path:
    """Tell the file that defines a fixture: a folder stands for its conftest.py."""
    return ROOT / name if name.endswith(".py") else ROOT / name / "conftest.py"


def _keywords(mark: ast.expr) -> list[ast.keyword]:
    return mark.keywords if isinstance(mark, ast.Call) else []


def _arguments(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    return [argument.arg for argument in function.args.args]
