"""The watch over the browser: what it is there to see, it sees."""

import pytest
from playwright.sync_api import Browser

from tests.support.books import sqlite_only
from tests.support.browser import visiting


@sqlite_only
def test_a_page_with_faults_has_violations(browser: Browser, base_url: str) -> None:
    """A picture without words, and grey on grey."""
    with visiting(browser, base_url) as visitor:
        visitor.page.set_content(
            "<html lang=en><title>t</title><main><h1 style='color: #999; background: #aaa'>Grey</h1>"
            "<img src='data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA='></main>"
        )
        found = " ".join(visitor.violations())
    assert "image-alt" in found
    assert "color-contrast" in found


@sqlite_only
@pytest.mark.parametrize(
    ("script", "fault"),
    [
        ("console.error('oh')", "console: oh"),
        ("setTimeout(() => { throw new Error('oh') })", "error: oh"),
        ("fetch('http://127.0.0.1:9/').catch(() => 0)", "outside request: http://127.0.0.1:9/"),
    ],
)
def test_what_goes_wrong_in_a_page_fails_the_visit(browser: Browser, base_url: str, script: str, fault: str) -> None:
    """Errors, and requests to anybody else."""

    def visit() -> None:
        with visiting(browser, base_url) as visitor:
            visitor.page.evaluate(f"{{ {script} }}")
            visitor.page.evaluate("new Promise(done => setTimeout(done, 100))")

    with pytest.raises(AssertionError) as error:
        visit()
    assert fault in str(error.value)


@sqlite_only
def test_a_page_that_is_too_wide_is_noticed(browser: Browser, base_url: str) -> None:
    """Nobody should have to scroll sideways."""
    with visiting(browser, base_url) as visitor:
        visitor.page.set_content("<div style='width: 3000px'>wide</div>")
        assert visitor.is_wider_than_the_window()
