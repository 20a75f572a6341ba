"""The page that explains the API, as a reader's browser shows it."""

import pytest
from playwright.sync_api import Browser

from tests.support.books import sqlite_only
from tests.support.browser import DESKTOP, PHONE, Scheme, visiting


@sqlite_only
@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (DESKTOP, "light"),
        (PHONE, "dark"),
        pytest.param(DESKTOP, "dark", marks=pytest.mark.nightly),
        pytest.param(PHONE, "light", marks=pytest.mark.nightly),
    ],
)
def test_everybody_can_read_it(browser: Browser, base_url: str, width: int, scheme: Scheme) -> None:
    """Contrast, headings, labels and width are right on phone and desktop, light and dark; it asks nobody else."""
    with visiting(browser, base_url, width=width, scheme=scheme) as visitor:
        visitor.open("/docs")
        assert visitor.violations() == []
        assert not visitor.is_wider_than_the_window()
