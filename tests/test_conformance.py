"""Every row of the specification and the decisions is held by a test, and the page that says so is current."""

import pytest

from tests.support.rows import CONFORMANCE, conformance_page, nodes_by_row, read_rows


def test_every_row_has_a_test() -> None:
    """No row of the two pages is without a black-box test that names it."""
    tests = nodes_by_row()
    missing = [row.id for row in read_rows() if row.id not in tests]
    assert missing == []


def test_every_named_row_exists() -> None:
    """No test claims a row that is not on the pages."""
    assert sorted(set(nodes_by_row()) - {row.id for row in read_rows()}) == []


def test_the_page_is_current() -> None:
    """docs/conformance.md is what the tests say now."""
    if CONFORMANCE.read_text(encoding="utf-8") != conformance_page():
        pytest.fail("docs/conformance.md is not current; write it anew with: python -m tests.support.rows")
