"""The pages that explain the API and its clients, as a reader's browser shows them."""

import pytest
from playwright.sync_api import Browser

from tarazu.service.configuration.addresses import CLIENTS_PATH
from tests.support.books import sqlite_only
from tests.support.browser import DESKTOP, PHONE, Scheme, visiting


@sqlite_only
@pytest.mark.parametrize("path", ["/docs", CLIENTS_PATH])
@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (DESKTOP, "light"),
        (PHONE, "dark"),
        pytest.param(DESKTOP, "dark", marks=pytest.mark.nightly),
        pytest.param(PHONE, "light", marks=pytest.mark.nightly),
    ],
)
def test_everybody_can_read_it(browser: Browser, base_url: str, path: str, width: int, scheme: Scheme) -> None:
    """Contrast, headings, labels and width are right on phone and desktop, light and dark; it asks nobody else."""
    with visiting(browser, base_url, width=width, scheme=scheme) as visitor:
        visitor.open(path)
        assert visitor.violations() == []
        assert not visitor.is_wider_than_the_window()
