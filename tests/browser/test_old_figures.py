"""An open page keeps its figures fresh, and says of when they are where it cannot."""

from playwright.sync_api import Browser, expect

from tests.support.books import sqlite_only
from tests.support.browser import visiting
from tests.support.service import RunningService
from tests.support.visitor import PASSWORD

REFRESH_MS = 15_000


@sqlite_only
def test_figures_that_could_not_be_renewed_say_so(browser: Browser, service: RunningService) -> None:
    """While the service is away, until it is there again, and after the session's end, with a way back in."""
    account = service.provisioning.create_account(name="Sara", email="old@example.com", plan="basic")
    token = service.provisioning.invite_holder(account.id).token
    with visiting(browser, f"http://127.0.0.1:{service.port}") as visitor:
        page = visitor.page
        page.clock.install()
        visitor.accept(f"http://127.0.0.1:{service.port}/panel/invitation/{token}", PASSWORD)
        visitor.open("/panel/")
        lost, over = page.locator("[data-stale=lost]"), page.locator("[data-stale=over]")
        expect(lost).to_be_hidden()
        page.evaluate("() => { window.fetched = fetch; window.fetch = () => Promise.reject(new Error('away')); }")
        page.clock.fast_forward(REFRESH_MS)
        expect(lost).to_be_visible()
        visitor.assert_readable()
        page.evaluate("() => { window.fetch = window.fetched; }")
        page.clock.fast_forward(REFRESH_MS)
        expect(lost).to_be_hidden()
        service.provisioning.sign_out_holder(account.id)
        page.clock.fast_forward(REFRESH_MS)
        expect(over).to_be_visible()
        over.locator("a").click()
        expect(page.locator('[name="password"]')).to_be_visible()
