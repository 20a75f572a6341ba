"""Every page can be read by everybody: with any eyes, by keyboard and screen reader, on phone and desktop."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.browser.pages import HOLDER_PAGES, OPEN_PAGES, OPERATOR_PAGES, PASSWORD, Inhabitants, settle
from tests.support.books import sqlite_only
from tests.support.browser import DESKTOP, PHONE, Visitor, visiting
from tests.support.scale import EVERYTHING
from tests.support.service import RunningService

LOOKS: dict[str, dict[str, Any]] = {
    "desktop": {"width": DESKTOP, "scheme": "light", "locale": "en-US"},
    "phone": {"width": PHONE, "scheme": "dark", "locale": "fa-IR"},
}
"""Both widths, both colours, both directions, each once: a fault of one of them shows beside whatever others."""
TIME_ZONE = {"desktop": "Time zone: UTC", "phone": "منطقهٔ زمانی: UTC"}
PAGES_OF_THE_PHONE = (
    "/panel/",
    "/panel/keys",
    "/panel/playground",
    "/admin/accounts/{account_id}",
    "/admin/catalogue",
    "/panel/sign-in",
)
"""What a phone looks at if not everything is tried: a chart, tables, forms, and what is wider than most."""


def seen(*pages: str) -> pytest.MarkDecorator:
    """Look at each of the pages from the desktop, and at some, or all, from the phone."""
    looked_at = [(page, look) for page in pages for look in LOOKS]
    chosen = [(page, look) for page, look in looked_at if EVERYTHING or look == "desktop" or page in PAGES_OF_THE_PHONE]
    return pytest.mark.parametrize(("page", "look"), chosen)


NOT_FOUND = "console: Failed to load resource: the server responded with a status of 404 (Not Found)"
"""What Chromium itself says of a page that is not there."""


@pytest.fixture(scope="module")
def inhabitants(service: RunningService, base_url: str) -> Inhabitants:
    """Let some people live in the books."""
    return settle(service, base_url)


@pytest.fixture(scope="module")
def visitors(browser: Browser, base_url: str, inhabitants: Inhabitants) -> Iterator[dict[str, Visitor]]:
    """Be signed in as a customer and as an operator, in a browser of each look."""
    with ExitStack() as stack:
        first = stack.enter_context(visiting(browser, base_url))
        first.accept(inhabitants.holder_link, PASSWORD)
        first.accept(inhabitants.operator_link, PASSWORD)
        kept: dict[str, Any] = {"storage_state": first.context.storage_state()}
        yield {name: stack.enter_context(visiting(browser, base_url, **kept, **look)) for name, look in LOOKS.items()}


@sqlite_only
@seen(*HOLDER_PAGES, *OPERATOR_PAGES)
def test_a_page_of_who_is_signed_in_can_be_read_by_everybody(
    inhabitants: Inhabitants, visitors: dict[str, Visitor], page: str, look: str
) -> None:
    """axe-core has nothing against it, it is no wider than its window, asks nobody else, and names its time zone."""
    visitor, path = visitors[look], inhabitants.path(page)
    visitor.open(path)
    assert visitor.page.url == visitor.base_url + path
    assert TIME_ZONE[look] in (visitor.page.text_content("body") or "")
    visitor.assert_readable()
    assert visitor.faults == []


@sqlite_only
@seen(*OPEN_PAGES)
def test_a_page_of_who_is_not_signed_in_can_be_read_by_everybody(
    browser: Browser, base_url: str, page: str, look: str
) -> None:
    """So can the door, and an invitation."""
    with visiting(browser, base_url, **LOOKS[look]) as visitor:
        visitor.open(page)
        visitor.faults[:] = [fault for fault in visitor.faults if fault != NOT_FOUND]
        visitor.assert_readable()


@sqlite_only
@pytest.mark.parametrize("look", LOOKS)
def test_a_page_that_is_not_there_can_be_read_by_everybody(visitors: dict[str, Visitor], look: str) -> None:
    """It says so, and leads back."""
    visitor = visitors[look]
    visitor.open("/panel/nothing-here")
    assert visitor.faults == [NOT_FOUND]
    visitor.faults.clear()
    visitor.assert_readable()


@sqlite_only
def test_pages_with_nothing_to_show_lead_on(browser: Browser, base_url: str, inhabitants: Inhabitants) -> None:
    """Whoever has just come finds no empty table, but words and a way."""
    with visiting(browser, base_url, **LOOKS["phone"]) as visitor:
        visitor.accept(inhabitants.newcomer_link, PASSWORD)
        for page in ("/panel/keys", "/panel/history", "/panel/credits", "/panel/playground"):
            visitor.open(page)
            assert visitor.page.locator(".empty h2").count() == 1, page
            visitor.assert_readable()
        visitor.open("/panel/models")
        assert visitor.page.locator("#money .notice").count() == 1
