"""A form that cannot be done as it was filled in."""

from playwright.sync_api import Browser

from tests.support.books import sqlite_only
from tests.support.browser import visiting
from tests.support.service import RunningService

PASSWORD = "a sentence to remember"
UNPROCESSABLE = "console: Failed to load resource: the server responded with a status of 422 (Unprocessable Entity)"
"""What Chromium itself says of such an answer."""


@sqlite_only
def test_a_refused_form_says_why_and_keeps_what_was_typed(
    browser: Browser, service: RunningService, base_url: str
) -> None:
    """The reason stands before the form, can be read by everybody, and its field is marked."""
    account = service.provisioning.create_account(name="Sara", email="sara@example.com", plan="large")
    with visiting(browser, base_url) as visitor:
        visitor.accept(service.provisioning.invite_holder(account.id).link(base_url), PASSWORD)
        visitor.open("/panel/keys/new")
        visitor.send("/panel/keys/new", name="laptop", limit="many")
        assert visitor.faults == [UNPROCESSABLE]
        visitor.faults.clear()
        assert "whole number" in visitor.page.locator('main [role="alert"]').inner_text()
        marked = visitor.page.locator("[aria-invalid]").evaluate_all("all => all.map(it => it.name)")
        assert marked == ["limit"]
        assert visitor.page.input_value('[name="name"]') == "laptop"
        visitor.assert_readable()
