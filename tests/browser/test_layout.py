"""What people call their things breaks no page, figures line up, and the controls of a form are of one height."""

import http.client

import pytest
from playwright.sync_api import Browser

from tests.browser.pages import HOLDER_PAGES, OPERATOR_PAGES, PASSWORD, settle
from tests.support.books import sqlite_only
from tests.support.browser import ENGLISH, HEIGHT, PERSIAN, Spoken, visiting, with_key
from tests.support.scale import EVERYTHING
from tests.support.seeds import session_seed
from tests.support.service import Customer, RunningService

WIDTHS = (320, 390, 768, 1024, 1280)
NAME = "production_worker_queue_consumer_of_the_second_data_center_north"
assert len(NAME) == 64
EDGES = """
() => [...document.querySelectorAll("table")].flatMap((table) => {
  const columns = {};
  for (const cell of table.querySelectorAll("td.end")) {
    const range = document.createRange();
    range.selectNodeContents(cell);
    (columns[cell.cellIndex] ??= []).push(range.getBoundingClientRect().right);
  }
  return Object.values(columns);
})
"""
"""Where the figures of each column end at the right."""
WIDEST = """
() => [...document.querySelectorAll("body *")].filter((e) => {
  const box = e.getBoundingClientRect();
  return box.right > document.documentElement.clientWidth + 1 || box.left < -1;
}).map((e) => e.outerHTML.slice(0, 120)).slice(-2)
"""
"""What stands out of the window."""
HEIGHTS = """
() => [...document.querySelectorAll("main form :is(select, input:not([type=hidden]), button)")]
  .filter((control) => control.offsetParent).map((control) => control.getBoundingClientRect().height)
"""
LACKING = """
() => [...document.querySelectorAll("main select")].filter((control) => control.offsetParent).map((control) => {
  const style = getComputedStyle(control), drawing = document.createElement("canvas").getContext("2d");
  drawing.font = style.font;
  const line = drawing.measureText(control.textContent);
  const room = control.clientHeight - parseFloat(style.paddingTop) - parseFloat(style.paddingBottom);
  return line.fontBoundingBoxAscent + line.fontBoundingBoxDescent - room;
})
"""
"""How much of a line each select has no room for; a browser gives it the typeface's own height, whatever we say."""
STRAYS = """
() => [...document.querySelectorAll("main code")].filter((code) => {
  const text = document.createRange();
  text.selectNodeContents(code);
  const box = code.getBoundingClientRect();
  return !code.closest("pre, .copyable") && Math.abs(text.getBoundingClientRect().right - box.right) > 1;
}).map((code) => code.outerHTML)
"""
"""Names in Latin letters that do not begin, on a page from right to left, where the lines around them do."""


@sqlite_only
def test_a_long_name_breaks_no_page(browser: Browser, service: RunningService, base_url: str) -> None:
    """Of an account, a key, or both together: at each width of a window, in one direction; nightly in both."""

    def live(customer: Customer) -> None:
        issued = service.provisioning.create_key(customer.account_id, name=NAME)
        assert service.chat(with_key(issued.secret)).status == http.client.OK

    here = settle(service, base_url, live=live, name=NAME)
    newest = service.provisioning.keys(here.customer.account_id)[-1].id
    with visiting(browser, base_url) as visitor:
        visitor.accept(here.holder_link, PASSWORD)
        visitor.accept(here.operator_link, PASSWORD)
        kept = visitor.context.storage_state()
    wider, strays = [], []
    for reader in (ENGLISH, PERSIAN):
        with visiting(browser, base_url, locale=reader.locale, storage_state=kept) as visitor:
            for page in _looked_at(reader):
                visitor.open(page.format(account_id=here.customer.account_id, key_id=newest))
                assert visitor.page.locator("html").get_attribute("dir") == reader.direction
                for width in WIDTHS:
                    visitor.page.set_viewport_size({"width": width, "height": HEIGHT})
                    if visitor.is_wider_than_the_window():
                        wider.append((page, width, reader.language, visitor.page.evaluate(WIDEST)))
                if reader is PERSIAN:
                    strays += [(page, code) for code in visitor.page.evaluate(STRAYS)]
    assert wider == []
    assert strays == []


def _looked_at(reader: Spoken) -> list[str]:
    """Choose every other page, and for the other reader those between, each commit the other way; or all."""
    pages = sorted((*HOLDER_PAGES, *OPERATOR_PAGES))
    return pages if EVERYTHING else pages[(session_seed() + (reader is PERSIAN)) % 2 :: 2]


@sqlite_only
@pytest.mark.parametrize("reader", [ENGLISH, PERSIAN], ids=["en", "fa"])
def test_figures_line_up_and_controls_are_of_one_height(
    browser: Browser, service: RunningService, base_url: str, reader: Spoken
) -> None:
    """The units of figures stand below each other; what stands in a line with a button is as high as it."""
    here = settle(service, base_url, number=2 if reader is ENGLISH else 3)
    with visiting(browser, base_url, locale=reader.locale) as visitor:
        visitor.accept(here.holder_link, PASSWORD)
        visitor.open("/panel/")
        edges: list[list[float]] = visitor.page.evaluate(EDGES)
        assert edges != []
        assert [column for column in edges if max(column) - min(column) > 1] == []
        for page in ("/panel/history", "/panel/playground"):
            visitor.open(page)
            heights: list[float] = visitor.page.evaluate(HEIGHTS)
            assert len(heights) >= 3, page
            assert max(heights) - min(heights) <= 1, (page, heights)
            assert max(visitor.page.evaluate(LACKING), default=0) <= 0, page
