"""The whole way of an operator, in a real browser: credits, a block, a stop."""

import http.client

from playwright.sync_api import Browser

from tests.support.browser import ENGLISH, Spoken, Visitor, visiting, with_key
from tests.support.service import RunningService

SPOKEN = ENGLISH
PASSWORD = "a sentence to remember"


def test_the_way_of_an_operator(browser: Browser, service: RunningService, base_url: str, spoken: Spoken) -> None:
    """An account is opened, invited, topped up, given a key, blocked, let in; intake stopped, resumed; an audit."""
    operator, invitation = service.provisioning.create_operator(email=f"ada.{spoken.language}@example.com", name="Ada")
    with visiting(browser, base_url, locale=spoken.locale) as visitor:
        visitor.accept(invitation.link(base_url), PASSWORD)
        assert visitor.path() == "/admin/"
        assert visitor.page.locator("html").get_attribute("dir") == spoken.direction

        visitor.open("/admin/accounts/new")
        visitor.send("/admin/accounts/new", name="Grace", email=f"grace.{spoken.language}@example.com")
        account_path, _, shown = visitor.path().rpartition("/")
        assert shown == "invitation"
        account_id = account_path.rpartition("/")[2]
        visitor.assert_readable()
        visitor.open(f"{account_path}/credits")
        visitor.send(f"{account_path}/credits/add", credits="25", reference=f"invoice {spoken.language}")
        assert service.provisioning.account(account_id).balance == 25
        customer = with_key(_created_key(visitor, account_path))
        assert service.chat(customer).status == http.client.OK

        _set_status(visitor, account_path, "blocked")
        assert service.chat(customer).status == http.client.FORBIDDEN
        _set_status(visitor, account_path, "active")
        assert service.chat(customer).status == http.client.OK

        visitor.open("/admin/intake")
        visitor.send("/admin/intake/stop", retry_after_s="7")
        visitor.assert_readable()
        stopped = service.chat(customer)
        assert (stopped.status, stopped.headers["retry-after"]) == (http.client.SERVICE_UNAVAILABLE, "7")
        visitor.send("/admin/intake/resume")
        assert service.chat(customer).status == http.client.OK

        visitor.open("/admin/audit")
        visitor.send("/admin/audit")
        visitor.assert_readable()
        assert visitor.page.locator('main .notice[role="status"]').count() == 1
        assert visitor.page.locator('main [role="alert"], #differences-title').count() == 0
    assert service.provisioning.account(account_id).balance == 22
    acts = [act for act in service.provisioning.trail(limit=100).acts if act.made_by == operator.email]
    assert [act.act for act in reversed(acts)] == [
        "operator.set_password",
        "operator.sign_in",
        "account.create",
        "account.invite",
        "credit.add",
        "key.create",
        "account.set",
        "account.set",
        "intake.stop",
        "intake.resume",
        "books.audit",
    ]


def _created_key(visitor: Visitor, account_path: str) -> str:
    visitor.open(f"{account_path}/keys/new")
    visitor.send(f"{account_path}/keys/new", name="shop")
    visitor.assert_readable()
    return visitor.page.inner_text("#secret")


def _set_status(visitor: Visitor, account_path: str, status: str) -> None:
    visitor.open(account_path)
    if status != "active":
        visitor.send(f"{account_path}/status", status=status)
        return
    with visitor.page.expect_navigation():
        visitor.page.locator('button[name="status"][value="active"]').click()
