"""docs/admin-api.md is held to the code: every operation, every error, every scope."""

import re
from pathlib import Path

from tarazu.api.admin.errors import AdminError
from tarazu.api.admin.routes import ROUTES
from tarazu.domain.admin_tokens import Scope
from tarazu.service.checks import HISTORY_LENGTH, HISTORY_LENGTH_MAX

PAGE = (Path(__file__).parents[3] / "docs" / "admin-api.md").read_text("utf-8")


def test_it_has_every_operation() -> None:
    """With its scope, in the order of the contract, and no other."""
    rows = re.findall(r"^\| `([A-Z]+ /\S*)` \| (.+) \| (.+) \|$", PAGE, re.MULTILINE)
    operations = [(f"{route.method} {route.path}", f"`{route.scope}`", route.summary) for route in ROUTES]
    assert rows == [*operations, ("GET /openapi.json", "none", "Get this contract")]


def test_it_has_every_error() -> None:
    """Each code under its status."""
    rows = re.findall(r"^\| (\d{3}) \| `(\w+)` \|", PAGE, re.MULTILINE)
    assert sorted(rows) == sorted((str(error.value.status), error.value.code) for error in AdminError)


def test_it_has_every_scope() -> None:
    """In the table."""
    assert re.findall(r"^\| `(\w+)` \| [a-z]", PAGE, re.MULTILINE)[: len(Scope)] == list(Scope)


def test_it_has_the_bounds_of_pages() -> None:
    """As they are in force."""
    assert f"`limit` ({HISTORY_LENGTH}, at most {HISTORY_LENGTH_MAX:,}, and echoed)" in PAGE
