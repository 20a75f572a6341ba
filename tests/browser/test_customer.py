"""The whole way of a new customer, in a real browser: from invitation to revoked key."""

import http.client
import json

from playwright.sync_api import Browser

from tests.support.browser import PERSIAN, Spoken, Visitor, visiting, with_key
from tests.support.service import RunningService

SPOKEN = PERSIAN
PASSWORD = "a sentence to remember"


def test_the_way_of_a_new_customer(browser: Browser, service: RunningService, base_url: str, spoken: Spoken) -> None:
    """Invited, signed in, a key created and copied, used, found in the history, replaced, revoked, and signed out."""
    email = f"sara.{spoken.language}@example.com"
    account = service.provisioning.create_account(name="Sara", email=email, plan="large")
    link = service.provisioning.invite_holder(account.id).link(base_url)
    permissions = ["clipboard-read", "clipboard-write"]
    with visiting(browser, base_url, locale=spoken.locale, permissions=permissions) as visitor:
        visitor.accept(link, PASSWORD)
        root = visitor.page.locator("html")
        assert (root.get_attribute("lang"), root.get_attribute("dir")) == (spoken.language, spoken.direction)
        first = _created_key(visitor)
        assert _copied(visitor) == first
        completion = service.chat(with_key(first))
        assert completion.status == http.client.OK

        completion_id = json.loads(completion.body)["id"]
        visitor.open("/panel/history")
        assert completion_id in visitor.page.inner_text("main")

        second = _replaced_key(visitor)
        assert service.chat(with_key(first)).status == http.client.UNAUTHORIZED
        assert service.chat(with_key(second)).status == http.client.OK

        visitor.open("/panel/keys")
        _open_key(visitor)
        visitor.send(visitor.path() + "/revoke")
        assert service.chat(with_key(second)).status == http.client.UNAUTHORIZED

        visitor.send("/panel/sign-out")
        visitor.open("/panel/keys")
        assert visitor.path() == "/panel/sign-in"
        visitor.send("/panel/sign-in", email=email, password=PASSWORD)
        assert visitor.path() == "/panel/keys"
    assert service.provisioning.account(account.id).used == 2


def test_a_model_answers_in_the_playground(
    browser: Browser, service: RunningService, base_url: str, spoken: Spoken
) -> None:
    """What it costs stands with the reply, and is taken from the same quota as the API's requests."""
    email = f"player.{spoken.language}@example.com"
    account = service.provisioning.create_account(name="Player", email=email, plan="large")
    service.provisioning.create_key(account.id, name="play")
    link = service.provisioning.invite_holder(account.id).link(base_url)
    with visiting(browser, base_url, locale=spoken.locale) as visitor:
        visitor.accept(link, PASSWORD)
        visitor.open("/panel/playground")
        visitor.say("Hello there", model="test/two")
        assert visitor.page.locator(".turn.assistant").count() == 1
        visitor.say("And again", model="test/one")
        visitor.assert_readable()
        assert visitor.page.locator(".turn.assistant").count() == 2
    assert service.provisioning.account(account.id).used == 3


def _created_key(visitor: Visitor) -> str:
    visitor.open("/panel/keys/new")
    visitor.send("/panel/keys/new", name="laptop")
    visitor.assert_readable()
    return visitor.page.inner_text("#secret")


def _copied(visitor: Visitor) -> str:
    visitor.page.locator('[data-copy="secret"]').click()
    visitor.page.wait_for_function("navigator.clipboard.readText().then(text => text.startsWith('trz_'))")
    text: str = visitor.page.evaluate("navigator.clipboard.readText()")
    return text


def _replaced_key(visitor: Visitor) -> str:
    visitor.open("/panel/keys")
    _open_key(visitor)
    visitor.send(visitor.path() + "/replace#at-once")
    return visitor.page.inner_text("#secret")


def _open_key(visitor: Visitor) -> None:
    """Open the newest key of the list."""
    visitor.page.locator("main tbody th a").first.click()
    visitor.page.wait_for_url("**/panel/keys/key_*")
