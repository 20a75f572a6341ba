"""What answers a form, in a real browser: by reload, by Back, in two tabs, in the other language, after the session."""

from msgspec import Struct
from playwright.sync_api import Browser
from sqlalchemy import func, select

from tarazu.store.schema import acts, requests
from tests.browser.pages import PASSWORD, settle
from tests.support.browser import ENGLISH, Spoken, Visitor, visiting
from tests.support.service import RunningService

SPOKEN = ENGLISH
KEY = "#secret"
LINK = "#link"


class Form(Struct, frozen=True):
    """A form, on which page it is, and what must stay to be seen of its answer."""

    page: str
    action: str
    fields: dict[str, str]
    seen: str

    @property
    def is_operators(self) -> bool:
        """Tell whose it is."""
        return self.page.startswith("/admin")


ACCOUNT = "/admin/accounts/{account_id}"
FORMS = {
    "a new key": Form("/panel/keys/new", "/panel/keys/new", {"name": "laptop"}, KEY),
    "a replaced key": Form("/panel/keys/{key_id}", "/panel/keys/{key_id}/replace", {"grace": "86400"}, KEY),
    "a refused key": Form("/panel/keys/new", "/panel/keys/new", {"name": "laptop", "limit": "many"}, '[role="alert"]'),
    "a paused key": Form("/panel/keys/{key_id}", "/panel/keys/{key_id}/pause", {}, '[role="status"]'),
    "an edited key": Form(
        "/panel/keys/{key_id}/edit", "/panel/keys/{key_id}/edit", {"name": "desk"}, '[role="status"]'
    ),
    "a new name": Form("/panel/settings", "/panel/settings/name", {"name": "Sara K."}, '[role="status"]'),
    "a reply": Form("/panel/playground", "/panel/playground", {"prompt": "How many?"}, ".turn.assistant .said"),
    "an invitation": Form(ACCOUNT, f"{ACCOUNT}/invite", {}, LINK),
    "a customer's key": Form(f"{ACCOUNT}/keys/new", f"{ACCOUNT}/keys/new", {"name": "job"}, KEY),
    "a top-up": Form(f"{ACCOUNT}/credits", f"{ACCOUNT}/credits/add", {"credits": "5", "reference": "{n}"}, "tbody tr"),
    "a correction": Form(
        f"{ACCOUNT}/credits", f"{ACCOUNT}/credits/correct", {"credits": "-1", "why": "{n}"}, '[role="status"]'
    ),
    "a new account": Form("/admin/accounts/new", "/admin/accounts/new", {"name": "Nima"}, "h1"),
    "an audit": Form("/admin/audit", "/admin/audit", {}, "table"),
}


def test_an_answer_stays_and_does_nothing_again(
    browser: Browser, service: RunningService, base_url: str, spoken: Spoken
) -> None:
    """It is there after a reload, in the other language, and by Back; and what the form did was done once."""
    here = settle(service, base_url, number=2 if spoken is ENGLISH else 3)
    with (
        visiting(browser, base_url, locale=spoken.locale) as holder,
        visiting(browser, base_url, locale=spoken.locale) as operator,
    ):
        holder.accept(here.holder_link, PASSWORD)
        operator.accept(here.operator_link, PASSWORD)
        for name, form in FORMS.items():
            visitor = operator if form.is_operators else holder
            visitor.open(here.path(form.page))
            fields = {field: value.format(n=f"{name} {spoken.language}") for field, value in form.fields.items()}
            if form.page == "/panel/playground":
                visitor.say(**fields)
            else:
                visitor.send(here.path(form.action), **fields)
            _assert_it_stays(visitor, name, form.seen, service, spoken)
            visitor.faults[:] = [fault for fault in visitor.faults if "status of 422" not in fault]


def _assert_it_stays(visitor: Visitor, name: str, seen: str, service: RunningService, spoken: Spoken) -> None:
    page, done = visitor.page, _done(service)
    text = page.inner_text(seen)
    assert text.strip(), name
    page.reload()
    assert page.inner_text(seen) == text, name
    other = "fa" if spoken.language == "en" else "en"
    for language in (other, spoken.language):
        with page.expect_navigation():
            page.locator(f'.self button[lang="{language}"]').click()
        assert page.locator("html").get_attribute("lang") == language
        page.wait_for_selector(seen)  # what the tab has kept comes a moment later
    assert page.inner_text(seen) == text, name
    visitor.open("/admin/settings" if "/admin/" in page.url else "/panel/settings")
    page.go_back()
    assert page.inner_text(seen) == text, name
    assert _done(service) == done, name


def _done(service: RunningService) -> list[int]:
    """Count what forms do: acts in the trail, and requests."""
    with service.engine.connect() as connection:
        return [connection.execute(select(func.count()).select_from(table)).scalar_one() for table in (acts, requests)]


def test_a_double_click_makes_one_key(browser: Browser, service: RunningService, base_url: str) -> None:
    """The second click sends nothing."""
    here = settle(service, base_url, number=4)
    with visiting(browser, base_url) as visitor:
        visitor.accept(here.holder_link, PASSWORD)
        visitor.open("/panel/keys/new")
        visitor.page.fill('[name="name"]', "laptop")
        before = len(service.provisioning.keys(here.customer.account_id))
        with visitor.page.expect_navigation():
            visitor.page.locator('form[action="/panel/keys/new"] button').last.dblclick()
        assert visitor.page.inner_text(KEY).startswith("trz_")
        assert len(service.provisioning.keys(here.customer.account_id)) == before + 1


def test_each_of_two_tabs_shows_its_own_key(browser: Browser, service: RunningService, base_url: str) -> None:
    """However they take turns."""
    here = settle(service, base_url, number=5)
    with visiting(browser, base_url) as visitor:
        visitor.accept(here.holder_link, PASSWORD)
        other = Visitor(visitor.context, visitor.context.new_page(), base_url, visitor.faults)
        shown = []
        for tab in (visitor, other):
            tab.open("/panel/keys/new")
            tab.send("/panel/keys/new", name="laptop")
            shown.append(tab.page.inner_text(KEY))
        for tab, secret in zip((visitor, other), shown, strict=True):
            tab.page.reload()
            assert tab.page.inner_text(KEY) == secret
        assert len(set(shown)) == 2


def test_what_was_written_outlives_the_session(browser: Browser, service: RunningService, base_url: str) -> None:
    """The session ends under an open form: whoever signs in is back at it, as it was written."""
    here = settle(service, base_url, number=6)
    with visiting(browser, base_url) as visitor:
        visitor.accept(here.holder_link, PASSWORD)
        visitor.open("/panel/playground")
        service.provisioning.sign_out_holder(here.customer.account_id)
        visitor.say("a long story", model="test/one")
        visitor.page.wait_for_url("**/panel/sign-in?**")
        assert "Your session has ended." in visitor.page.inner_text("main")
        visitor.send("/panel/sign-in", email="sara6@example.com", password=PASSWORD)
        assert visitor.page.input_value('[name="prompt"]') == "a long story"
        assert visitor.page.input_value('[name="model"]') == "test/one"
        visitor.say("a long story")
        assert visitor.page.locator(".turn.assistant").count() == 1
