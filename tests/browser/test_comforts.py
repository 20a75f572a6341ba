"""What a script and a style sheet add to the pages: a password that can be seen, and paper without a menu."""

from playwright.sync_api import Browser, expect

from tests.support.books import sqlite_only
from tests.support.browser import visiting
from tests.support.service import RunningService

PASSWORD = "a sentence to remember"


@sqlite_only
def test_a_password_can_be_seen_while_it_is_written(browser: Browser, service: RunningService, base_url: str) -> None:
    """The cursor stands in the first field that is empty; what is sent is a password again, and right."""
    account = service.provisioning.create_account(name="Sara", email="seen@example.com", plan="large")
    with visiting(browser, base_url) as visitor:
        visitor.accept(service.provisioning.invite_holder(account.id).link(base_url), PASSWORD)
        visitor.context.clear_cookies()
        visitor.open("/panel/sign-in")
        assert visitor.page.evaluate("document.activeElement.name") == "email"
        field = visitor.page.locator('[name="password"]')
        button = visitor.page.get_by_role("button", name="Show the password")
        button.click()
        assert (field.get_attribute("type"), button.get_attribute("aria-pressed")) == ("text", "true")
        visitor.assert_readable()
        button.click()
        assert (field.get_attribute("type"), button.get_attribute("aria-pressed")) == ("password", "false")
        button.click()
        visitor.send("/panel/sign-in", email="seen@example.com", password=PASSWORD)
        assert visitor.path() == "/panel/"


@sqlite_only
def test_paper_has_no_menu_and_no_place_for_it(browser: Browser, service: RunningService, base_url: str) -> None:
    """What is printed begins at the edge."""
    account = service.provisioning.create_account(name="Sara", email="paper@example.com", plan="large")
    with visiting(browser, base_url) as visitor:
        visitor.accept(service.provisioning.invite_holder(account.id).link(base_url), PASSWORD)
        main = visitor.page.locator("main")
        assert main.evaluate("it => it.getBoundingClientRect().left") > 200
        visitor.page.emulate_media(media="print")
        assert main.evaluate("it => it.getBoundingClientRect().left") < 200
        expect(visitor.page.locator("nav.menu")).to_be_hidden()
