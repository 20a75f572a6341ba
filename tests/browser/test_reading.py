"""Figures can be read by fingers and keyboards, and what belongs together stays together, at each width of a window."""

from itertools import count

import pytest
from playwright.sync_api import Browser

from tests.browser.pages import PASSWORD, settle
from tests.support.books import sqlite_only
from tests.support.browser import ENGLISH, HEIGHT, PERSIAN, Spoken, visiting
from tests.support.service import RunningService

_numbers = count(2)
READERS = pytest.mark.parametrize("reader", [ENGLISH, PERSIAN], ids=["en", "fa"])
BAR = ".chart .place"
TOLD = """
() => [...document.querySelectorAll(".chart .told")].filter((text) => getComputedStyle(text).visibility === "visible")
  .map((text) => [text.textContent, text.getBoundingClientRect()])
  .map(([text, box]) => [text, box.left >= 0 && box.right <= innerWidth])
"""
"""What is written above the bars now, and whether all of it is in the window."""
ROWS_OF_CARDS = """
() => [...document.querySelectorAll(".cards")].map((cards) => {
  const tops = {};
  for (const card of cards.children) tops[card.offsetTop] = (tops[card.offsetTop] ?? 0) + 1;
  return Object.values(tops);
})
"""
LINES = """
() => [...document.querySelectorAll("td code")].map((code) => {
  code.textContent = "openai/gpt-4o-mini";
  return Math.round(code.getBoundingClientRect().height / parseFloat(getComputedStyle(code).lineHeight));
})
"""
"""How many lines the name of a model takes in each cell."""


@sqlite_only
@READERS
def test_a_bar_says_its_value_to_the_keyboard_and_to_a_finger(
    browser: Browser, service: RunningService, base_url: str, reader: Spoken
) -> None:
    """One stop of the keyboard, then the arrow keys as the language runs; one value at a time, in the window."""
    here = settle(service, base_url, number=next(_numbers))
    with visiting(browser, base_url, locale=reader.locale) as visitor:
        visitor.accept(here.holder_link, PASSWORD)
        page = visitor.page
        for width in (320, 1280):
            page.set_viewport_size({"width": width, "height": HEIGHT})
            visitor.open("/panel/")
            names = [str(bar.get_attribute("aria-label")).split(" (")[0] for bar in page.locator(BAR).all()]
            assert len(names) == 30
            page.locator(f"{BAR}[tabindex='0']").focus()
            assert page.evaluate(TOLD) == [[names[-1], True]]
            page.keyboard.press("ArrowLeft" if reader is ENGLISH else "ArrowRight")
            assert page.evaluate(TOLD) == [[names[-2], True]]
            assert page.locator(f"{BAR}[tabindex='0']").count() == 1
            page.keyboard.press("Home")
            assert page.evaluate(TOLD) == [[names[0], True]]
            page.locator(BAR).nth(14).locator(".catch").click()
            assert page.evaluate(TOLD) == [[names[14], True]]


@sqlite_only
@READERS
def test_three_figures_stand_in_one_row_and_models_in_one_piece(
    browser: Browser, service: RunningService, base_url: str, reader: Spoken
) -> None:
    """On a tablet and on a desk there is no orphan; the name of a model is in two lines at most."""
    here = settle(service, base_url, number=next(_numbers))
    with visiting(browser, base_url, locale=reader.locale) as visitor:
        visitor.accept(here.holder_link, PASSWORD)
        for width in (768, 1024, 1280):
            visitor.page.set_viewport_size({"width": width, "height": HEIGHT})
            visitor.open("/panel/")
            assert visitor.page.evaluate(ROWS_OF_CARDS) == [[3]], width
            visitor.open("/panel/history")
            lines: list[int] = visitor.page.evaluate(LINES)
            assert lines
            assert max(lines) <= 2, width


@sqlite_only
@READERS
def test_a_typeface_comes_along_with_persian_pages_alone(
    browser: Browser, service: RunningService, base_url: str, reader: Spoken
) -> None:
    """Both weights, from this service, so that letters look alike on every system; no other page loads them."""
    here = settle(service, base_url, number=next(_numbers))
    with visiting(browser, base_url, locale=reader.locale) as visitor:
        asked: list[str] = []
        visitor.page.on("request", lambda request: asked.append(request.url))
        visitor.accept(here.holder_link, PASSWORD)
        visitor.open("/panel/")
        visitor.page.evaluate("() => document.fonts.ready")
        loaded: list[str] = visitor.page.evaluate(
            "() => [...document.fonts].filter((font) => font.status === 'loaded').map((font) => font.weight)"
        )
        assert sorted(loaded) == (["400", "600"] if reader is PERSIAN else [])
        assert any(".ttf" in url for url in asked) == (reader is PERSIAN)
