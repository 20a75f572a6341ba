"""The playground in one page, in a real browser: nothing of a conversation is lost or paid twice, wherever one goes."""

import json

import pytest
from playwright.sync_api import Browser, expect
from sqlalchemy import func, select

from tarazu.store.schema import requests
from tests.browser.pages import PASSWORD, Inhabitants, settle
from tests.support.at_once import wait_until
from tests.support.backend import ScriptedBackend, replies
from tests.support.browser import PERSIAN, Spoken, Visitor, visiting
from tests.support.service import RunningService

SPOKEN = PERSIAN
PLAYGROUND = "/panel/playground"
LONG = "\n\n".join(f"{number}. " + "so it goes on " * 20 for number in range(60))


@pytest.fixture(scope="module")
def numbers() -> list[int]:
    """Count the groups of people in the books."""
    return []


@pytest.fixture
def here(service: RunningService, base_url: str, numbers: list[int], backend: ScriptedBackend) -> Inhabitants:
    """Somebody of this test alone, and a model that behaves."""
    backend.reset()
    numbers.append(0)
    return settle(service, base_url, number=10 + len(numbers))


def _served(service: RunningService, here: Inhabitants) -> int:
    with service.engine.connect() as connection:
        of = requests.c.account_id == here.customer.account_id
        return connection.execute(select(func.count()).select_from(requests).where(of)).scalar_one()


def _enter(visitor: Visitor, here: Inhabitants) -> None:
    visitor.accept(here.holder_link, PASSWORD)
    visitor.open(PLAYGROUND)
    visitor.page.locator("#key").select_option(here.customer.key_id)


def test_a_conversation_stays_wherever_one_goes(
    browser: Browser, service: RunningService, base_url: str, here: Inhabitants, spoken: Spoken
) -> None:
    """By Back, reload, the menu, the other language and the end of the session; and nothing is asked again."""
    with visiting(browser, base_url, locale=spoken.locale) as visitor:
        _enter(visitor, here)
        page = visitor.page
        page.locator("summary").first.click()
        visitor.say("How many?", model="test/two", system="Be brief.")
        visitor.say("And then?")
        page.fill("#prompt", "half a thou")
        served = _served(service, here)

        def assert_all_is_there() -> None:
            expect(page.locator(".turn.assistant")).to_have_count(2)
            assert page.locator(".turn.user .said").all_inner_texts() == ["How many?", "And then?"]
            expect(page.locator("#prompt")).to_have_value("half a thou")
            expect(page.locator("#system")).to_have_value("Be brief.")
            expect(page.locator("#model")).to_have_value("test/two")

        assert_all_is_there()
        page.reload()
        assert_all_is_there()
        page.locator(".turn.assistant .cost a").last.click()
        page.wait_for_url("**/history?**")
        page.go_back()
        assert_all_is_there()
        visitor.open("/panel/keys")
        visitor.open(PLAYGROUND)
        assert_all_is_there()
        visitor.assert_readable()
        other = "fa" if spoken.language == "en" else "en"
        for language in (other, spoken.language):
            with page.expect_navigation():
                page.locator(f'.self button[lang="{language}"]').click()
            assert_all_is_there()
        service.provisioning.sign_out_holder(here.customer.account_id)
        page.locator("#ask button.primary").click()
        page.wait_for_url("**/panel/sign-in?**")
        email = service.provisioning.account(here.customer.account_id).email or ""
        visitor.send("/panel/sign-in", email=email, password=PASSWORD)
        assert_all_is_there()
        assert _served(service, here) == served


def test_a_long_conversation_outlives_its_session(
    browser: Browser, service: RunningService, base_url: str, here: Inhabitants, backend: ScriptedBackend
) -> None:
    """However long: what no cookie holds, and no stranger may send, the tab has."""
    backend.behaviour = replies(LONG)
    with visiting(browser, base_url) as visitor:
        _enter(visitor, here)
        visitor.say("Tell me")
        service.provisioning.sign_out_holder(here.customer.account_id)
        visitor.page.fill("#prompt", "Go on")
        visitor.page.locator("#ask button.primary").click()
        visitor.page.wait_for_url("**/panel/sign-in?**")
        email = service.provisioning.account(here.customer.account_id).email or ""
        visitor.send("/panel/sign-in", email=email, password=PASSWORD)
        expect(visitor.page.locator(".turn.assistant")).to_have_count(1)
        expect(visitor.page.locator("#prompt")).to_have_value("Go on")


def test_a_page_that_comes_in_place_of_a_reply_tells_what_is_seen_of_it(
    browser: Browser, base_url: str, here: Inhabitants
) -> None:
    """A problem's page: nothing is told that stands hidden in it, as that the session has ended; the message stays."""
    with visiting(browser, base_url) as visitor:
        _enter(visitor, here)
        visitor.page.evaluate("document.getElementById('ask').elements.turn.value = 'no page of ours writes this'")
        visitor.say("Hello")
        told = visitor.page.inner_text("#problem")
        assert "could not be read" in told
        for unseen in ("session", "could not be renewed", "Back to the overview"):
            assert unseen not in told
        expect(visitor.page.locator("#prompt")).to_have_value("Hello")
        visitor.faults.clear()  # the browser notes an answer that is an error


def test_a_reply_is_seen_from_its_beginning(
    browser: Browser, base_url: str, here: Inhabitants, backend: ScriptedBackend
) -> None:
    """A long one too; and the next message can be written at once."""
    backend.behaviour = replies(LONG)
    with visiting(browser, base_url) as visitor:
        _enter(visitor, here)
        visitor.say("Tell me")
        top = visitor.page.evaluate("document.getElementById('last').getBoundingClientRect().top")
        assert 0 <= top < 300
        assert visitor.page.evaluate("document.activeElement.id") == "prompt"


def test_a_message_can_be_stopped_and_costs_nothing(
    browser: Browser, service: RunningService, base_url: str, here: Inhabitants, backend: ScriptedBackend
) -> None:
    """The model is let go, and the message is there to be sent again."""
    with visiting(browser, base_url) as visitor:
        _enter(visitor, here)
        used = service.provisioning.account(here.customer.account_id).used
        backend.hold()
        visitor.page.fill("#prompt", "Stop me")
        visitor.page.keyboard.press("Control+Enter")
        backend.wait_for_requests(1)
        visitor.assert_readable()
        visitor.page.locator(".pending button").click()
        backend.wait_for_leaving()
        backend.let_go()
        expect(visitor.page.locator("#problem [role=alert]")).to_have_text("Stopped. Your message is still here.")
        wait_until(lambda: service.provisioning.account(here.customer.account_id).used == used)
        visitor.say("Stop me")
        assert visitor.page.locator(".turn.assistant").count() == 1


def test_a_double_click_asks_once(browser: Browser, service: RunningService, base_url: str, here: Inhabitants) -> None:
    """And so does Enter in haste."""
    with visiting(browser, base_url) as visitor:
        _enter(visitor, here)
        served = _served(service, here)
        visitor.page.fill("#prompt", "Once")
        visitor.page.locator("#ask button.primary").dblclick()
        expect(visitor.page.locator(".turn.assistant")).to_have_count(1)
        expect(visitor.page.locator(".pending")).to_have_count(0)
        assert _served(service, here) == served + 1


def test_a_refusal_leaves_the_message(browser: Browser, base_url: str, here: Inhabitants) -> None:
    """The page says why, and another model may answer it."""
    with visiting(browser, base_url) as visitor:
        _enter(visitor, here)
        visitor.say("A dear question", model="test/dear")
        assert "do not cover this model" in visitor.page.inner_text("#problem")
        assert visitor.page.input_value("#prompt") == "A dear question"
        assert not visitor.page.locator("#turns").is_visible()
        visitor.say("A dear question", model="test/one")
        assert visitor.page.locator(".turn.assistant").count() == 1
        assert visitor.page.locator("#problem [role=alert]").count() == 0
        visitor.faults[:] = [fault for fault in visitor.faults if "status of 402" not in fault]


def test_a_reply_is_copied_as_the_model_wrote_it(
    browser: Browser, base_url: str, here: Inhabitants, backend: ScriptedBackend
) -> None:
    """With its marks, which the page shows as what they mean."""
    backend.behaviour = replies("**Seven**\n\n- of\n- nine")
    with visiting(browser, base_url, permissions=["clipboard-read", "clipboard-write"]) as visitor:
        _enter(visitor, here)
        visitor.say("How many?")
        assert visitor.page.locator(".markdown strong").inner_text() == "Seven"
        visitor.page.locator("[data-copy-turn]").click()
        expect(visitor.page.locator("[data-copy-turn]")).to_have_text("Copied")
        assert visitor.page.evaluate("navigator.clipboard.readText()") == "**Seven**\n\n- of\n- nine"


def test_the_conversation_is_shown_as_code(browser: Browser, base_url: str, here: Inhabitants) -> None:
    """With what is written just now."""
    with visiting(browser, base_url) as visitor:
        _enter(visitor, here)
        visitor.say("How many?")
        visitor.page.fill("#prompt", "And then?")
        visitor.page.locator("#code summary").click()
        expect(visitor.page.locator("#sample-1")).to_contain_text("And then?")
        expect(visitor.page.locator("#sample-2")).to_contain_text("How many?")
        visitor.assert_readable()


def test_a_new_conversation_and_another_person_find_nothing(browser: Browser, base_url: str, here: Inhabitants) -> None:
    """The settings stay where only the conversation is begun anew; who signs out leaves nothing in the tab."""
    with visiting(browser, base_url) as visitor:
        _enter(visitor, here)
        page = visitor.page
        page.locator("summary").first.click()
        visitor.say("A secret", system="Be brief.")
        with page.expect_navigation():
            page.locator("[data-new]").click()
        expect(page.locator("#system")).to_have_value("Be brief.")
        expect(page.locator(".turn")).to_have_count(0)
        visitor.say("Another secret")
        kept = json.dumps(page.evaluate("Object.entries(sessionStorage)"))
        assert "Another secret" in kept
        visitor.send("/panel/sign-out")
        assert page.evaluate("Object.entries(sessionStorage)") == []
        visitor.accept(here.newcomer_link, PASSWORD)
        visitor.open(PLAYGROUND)
        assert "secret" not in page.inner_text("main")


def test_without_scripts_the_same_is_done_by_forms(browser: Browser, base_url: str, here: Inhabitants) -> None:
    """Each message leads to the page with its reply, which a reload does not ask again."""
    with visiting(browser, base_url, java_script_enabled=False) as visitor:
        visitor.accept(here.holder_link, PASSWORD)
        visitor.open(PLAYGROUND)
        for prompt in ("How many?", "And then?"):
            visitor.page.fill("#prompt", prompt)
            visitor.page.locator("#model").select_option("test/one")
            with visitor.page.expect_navigation():
                visitor.page.locator("#ask button.primary").click()
        assert visitor.page.locator(".turn.assistant").count() == 2
        visitor.page.reload()
        assert visitor.page.locator(".turn.assistant").count() == 2
