"""Keys in a real browser: paused, resumed, edited and replaced; once, whatever is pressed, and still there by Back."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.pages import PASSWORD, settle
from tests.support.backend import ScriptedBackend
from tests.support.browser import ENGLISH, PERSIAN, PHONE, Spoken, visiting
from tests.support.service import CATALOGUE, RunningService, checked
from tests.support.stores import Store

MODELS = "".join(
    f"""
[models."maker{number % 5}/model-{number}"]
display_name = "مدل {number} کوچك"
provider = "Maker {number % 5}"
credits = 1
max_output_tokens = 100
[[models."maker{number % 5}/model-{number}".backends]]
kind = "openai"
url = "BACKEND"
model = "m"
"""
    for number in range(40)
)

BADGES = {"en": ("paused", "replaced"), "fa": ("متوقف", "جایگزین‌شده")}
EACH_LANGUAGE = pytest.mark.parametrize("reader", [ENGLISH, PERSIAN], ids=["en", "fa"])


@pytest.fixture(scope="module")
def service(
    store: Store, backend: ScriptedBackend, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningService]:
    """A service that sells forty models more."""
    folder = tmp_path_factory.mktemp("service")
    url = store.new_books(folder)
    with checked(RunningService(folder, backend.url, catalogue=CATALOGUE + MODELS, database_url=url)) as service:
        yield service


@EACH_LANGUAGE
def test_a_key_in_its_grace_wears_a_badge(
    browser: Browser, service: RunningService, base_url: str, reader: Spoken
) -> None:
    """In the list and on its page, which leads to the new key, and not to one more; by reload and by Back too."""
    here = settle(service, base_url, number=2 if reader is ENGLISH else 3)
    key = f"/panel/keys/{here.customer.key_id}"
    with visiting(browser, base_url, locale=reader.locale) as visitor:
        visitor.accept(here.holder_link, PASSWORD)
        visitor.open(key)
        visitor.page.locator(f'form[action="{key}/replace"] button').first.dblclick()
        visitor.page.wait_for_selector("#secret")
        (successor,) = [
            each.successor_id for each in service.provisioning.keys(here.customer.account_id) if each.successor_id
        ]
        assert visitor.path() == f"/panel/keys/{successor}/shown"
        visitor.page.go_back()
        visitor.page.reload()
        assert visitor.page.locator(f'form[action^="{key}/replace"]').count() == 0
        assert visitor.page.locator(f'.notice.warn a[href="/panel/keys/{successor}"]').count() == 1
        visitor.assert_readable()
        visitor.open("/panel/keys")
        row = visitor.page.locator("tr", has=visitor.page.locator(f'a[href="{key}"]'))
        assert BADGES[reader.language][1] in row.inner_text()
        other = visitor.page.locator("tr", has=visitor.page.locator(f'a[href="/panel/keys/{successor}"]'))
        assert BADGES[reader.language][1] not in other.inner_text()
        visitor.assert_readable()


@EACH_LANGUAGE
def test_a_key_is_paused_edited_and_resumed_once(
    browser: Browser, service: RunningService, base_url: str, reader: Spoken
) -> None:
    """However often the button is pressed; Back and reload show how it stands, and do nothing."""
    here = settle(service, base_url, number=4 if reader is ENGLISH else 5)
    key, books = f"/panel/keys/{here.customer.key_id}", service.provisioning
    with visiting(browser, base_url, locale=reader.locale, width=PHONE) as visitor:
        visitor.accept(here.holder_link, PASSWORD)
        page = visitor.page
        for act, says in (("pause", True), ("resume", False)):
            visitor.open(key)
            form = page.locator(f'form[action="{key}/{act}"]')
            if act == "pause":
                page.locator("details.danger", has=form).locator("summary").click()
            with page.expect_navigation():
                form.locator("button").dblclick()
            assert (BADGES[reader.language][0] in page.locator(".head").inner_text()) is says
            page.reload()
            visitor.open("/panel/keys")
            page.go_back()
            assert (BADGES[reader.language][0] in page.locator(".head").inner_text()) is says
            assert books.trail(limit=1).acts[0].act == f"key.{act}"
            visitor.assert_readable()
        visitor.open(f"{key}/edit")
        page.fill('[name="name"]', "desk")
        with page.expect_navigation():
            page.locator(f'form[action="{key}/edit"] button.primary').dblclick()
        assert page.inner_text("h1") == "desk"
        page.reload()
        done = [act.act for act in books.trail(limit=50, account_id=here.customer.account_id).acts]
        assert [done.count(f"key.{act}") for act in ("pause", "resume", "set")] == [1, 1, 1]


def test_a_last_day_is_asked_for_where_it_is_chosen(browser: Browser, service: RunningService, base_url: str) -> None:
    """And only there; no script is needed for it."""
    here = settle(service, base_url, number=6)
    with visiting(browser, base_url) as visitor:
        visitor.accept(here.holder_link, PASSWORD)
        visitor.open("/panel/keys/new")
        field = visitor.page.locator('[name="until"]')
        expect(field).to_be_hidden()
        visitor.page.select_option('[name="days"]', "day")
        expect(field).to_be_visible()
        visitor.assert_readable()
        visitor.send("/panel/keys/new", name="till spring", days="day", until="1408/12/30")
        assert "20 March 2030" in visitor.page.inner_text("main")


def test_of_many_models_those_for_a_key_are_searched(browser: Browser, service: RunningService, base_url: str) -> None:
    """As they read, in any keyboard's letters; what is chosen stays to be seen, and is what the key may use."""
    here = settle(service, base_url, number=7)
    with visiting(browser, base_url) as visitor:
        visitor.accept(here.holder_link, PASSWORD)
        visitor.open("/panel/keys/new")
        search, boxes = visitor.page.locator("[data-narrow]"), visitor.page.locator("#model-choices .choice:visible")
        assert boxes.count() > 40
        visitor.assert_readable()
        search.fill("MAKER3/model-3")
        expect(boxes).to_have_count(3)  # 3, 33 and 38
        visitor.page.get_by_label("maker3/model-33").check()
        search.fill("مدل 7 کوچک")
        expect(boxes).to_have_count(2)
        visitor.page.get_by_label("maker2/model-7").check()
        for as_written in ("مدل ۱۷ کوچک", "مدل ١٧ كوچك", "مُدل 17 کو\u200cچک", "\u200fمدل １７ کوچـک"):
            search.fill("nowhere")
            expect(boxes).to_have_count(2)
            search.fill(as_written)
            expect(boxes).to_have_count(3)
        search.press("Enter")
        assert visitor.path() == "/panel/keys/new"
        visitor.send("/panel/keys/new", name="few models")
        key_id = visitor.path().split("/")[3]
        assert set(service.provisioning.key(key_id).models or ()) == {"maker2/model-7", "maker3/model-33"}
