"""How pages tell of credits that are used up, in a real browser: readable by everybody, also in a narrow window."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.support.backend import ScriptedBackend
from tests.support.browser import ENGLISH, PERSIAN, Spoken, visiting, with_key
from tests.support.service import CATALOGUE, RunningService, checked

PASSWORD = "a sentence to remember"
NARROW = 320
SHOP = """
[plans.tiny]
monthly_credits = 1
models = ["test/one"]

[plans.small]
monthly_credits = 5
models = ["test/one"]

[plans.mixed]
monthly_credits = 1
models = ["test/one", "test/free"]

[shop]
name = "Acme of the long name that somebody chose for a shop"
payment_url = "https://pay.example.com/top-up"
contact = "help.for.customers.of.the.shop@example.com"
"""
SAID = {
    "tiny": (1, {"en": "requests are refused", "fa": "درخواست‌ها رد می‌شوند"}),
    "small": (4, {"en": "80% of your quota", "fa": "۸۰٪ سهمیه"}),
    "mixed": (1, {"en": "only free models answer", "fa": "فقط مدل‌های رایگان"}),
}
"""How many requests use up a plan's credits, or most of them, and what is said then."""
SAME_EVERYWHERE = ("/panel/", "/panel/keys", "/panel/playground", "/panel/credits", "/panel/settings")


@pytest.fixture(scope="module")
def shop(backend: ScriptedBackend, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service whose shop says how it is paid, with a plan of one credit."""
    with checked(RunningService(tmp_path_factory.mktemp("shop"), backend.url, catalogue=CATALOGUE + SHOP)) as running:
        yield running


@pytest.mark.parametrize("plan", SAID)
@pytest.mark.parametrize("reader", [ENGLISH, PERSIAN], ids=["en", "fa"])
def test_used_up_credits_are_told_on_every_page(
    browser: Browser, shop: RunningService, reader: Spoken, plan: str
) -> None:
    """With the link to the payment; and who is not signed in yet sees whose service it is."""
    base_url = f"http://127.0.0.1:{shop.port}"
    email = f"sara.{plan}.{reader.language}@example.com"
    account = shop.provisioning.create_account(name="Sara", email=email, plan=plan)
    secret = shop.provisioning.create_key(account.id, name="laptop").secret
    asked, said = SAID[plan]
    for _ in range(asked):
        assert shop.chat(with_key(secret), model="test/one").status == 200
    with visiting(browser, base_url, width=NARROW, locale=reader.locale) as visitor:
        visitor.open("/panel/sign-in")
        expect(visitor.page.locator('a[href^="mailto:help"]')).to_be_visible()
        visitor.assert_readable()
        visitor.accept(shop.provisioning.invite_holder(account.id).link(base_url), PASSWORD)
        for path in SAME_EVERYWHERE if plan == "tiny" else SAME_EVERYWHERE[:1]:
            visitor.open(path)
            told = visitor.page.locator("#money")
            expect(told).to_contain_text(said[reader.language])
            expect(told.locator('a[href="https://pay.example.com/top-up"]')).to_be_visible()
            visitor.assert_readable()
