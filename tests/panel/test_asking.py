"""What ends something asks before it does: every form of both sites is one of those, or is told here why not."""

from html.parser import HTMLParser
from pathlib import Path

import pytest

from tarazu.domain.accounts import AccountStatus
from tarazu.panel.notices import NOTICES, WARNINGS, WITH_FIGURES
from tests.support.books import sqlite_only
from tests.support.routes import all_places
from tests.support.service import RunningService
from tests.support.visitor import PASSWORD, Visitor, holder, operator

ASKS = {
    "/panel/keys/{key_id}/pause",
    "/panel/keys/{key_id}/revoke",
    "/panel/settings/sessions/end-others",
    "/admin/accounts/{account_id}/status",
    "/admin/accounts/{account_id}/email",
    "/admin/accounts/{account_id}/sign-out",
    "/admin/accounts/{account_id}/credits/correct",
    "/admin/accounts/{account_id}/keys/{key_id}/pause",
    "/admin/accounts/{account_id}/keys/{key_id}/revoke",
    "/admin/intake/stop",
    "/admin/settings/sessions/end-others",
}
"""Forms that stand behind a second button, which says what ends."""
IN_TIME = "the old key lives on for as long as is chosen; at once has a form of its own, which asks"
BY_PASSWORD = "asks for the password, or is the password"
AGAIN = "who is signed out signs in again"
READS = "changes nothing in the books that outlives it"
HARMLESS = {
    "/panel/keys/new": "ends nothing",
    "/panel/keys/{key_id}/replace": IN_TIME,
    "/panel/keys/{key_id}/edit": "can be changed back",
    "/panel/keys/{key_id}/resume": "ends nothing",
    "/panel/keys/{key_id}/shown": "its button says that the key is copied",
    "/panel/playground": "its button is the wish; a message is charged once",
    "/panel/playground/take-up": READS,
    "/admin/accounts/new": "ends nothing",
    "/admin/accounts/new/invited": "ends nothing",
    "/admin/accounts/{account_id}/name": "can be changed back",
    "/admin/accounts/{account_id}/terms": "another plan can be chosen again",
    "/admin/accounts/{account_id}/invite": "only an older link ends, which the page says",
    "/admin/accounts/{account_id}/invitation": "its button says that the link is copied",
    "/admin/accounts/{account_id}/credits/add": "gives; a correction takes back",
    "/admin/accounts/{account_id}/keys/new": "ends nothing",
    "/admin/accounts/{account_id}/keys/{key_id}/replace": IN_TIME,
    "/admin/accounts/{account_id}/keys/{key_id}/edit": "can be changed back",
    "/admin/accounts/{account_id}/keys/{key_id}/resume": "ends nothing",
    "/admin/accounts/{account_id}/keys/{key_id}/shown": "its button says that the key is copied",
    "/admin/intake/resume": "ends nothing",
    "/admin/audit": READS,
    **{
        f"{site}{path}": reason
        for site in ("/panel", "/admin")
        for path, reason in {
            "/settings/name": "ends nothing",
            "/settings/password": BY_PASSWORD,
            "/settings/sessions/end": AGAIN,
            "/settings/second-factor": BY_PASSWORD,
            "/settings/second-factor/codes": "its button says that the codes are copied",
            "/settings/second-factor/remove": BY_PASSWORD,
            "/sign-in": BY_PASSWORD,
            "/sign-in/code": BY_PASSWORD,
            "/sign-out": AGAIN,
            "/invitation/{token}": BY_PASSWORD,
            "/language": "ends nothing",
        }.items()
    },
}
PAGES = {
    "/panel": ("/keys/KEY", "/settings"),
    "/admin": ("/accounts/ACCOUNT", "/accounts/ACCOUNT/credits", "/accounts/ACCOUNT/keys/KEY", "/intake", "/settings"),
}
"""Those with forms that ask."""


class Forms(HTMLParser):
    """The addresses of a page's forms, and whether each stands behind a question."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.found: list[tuple[str, bool, str]] = []
        self._questions: list[bool] = []
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a question, or a form."""
        attributes = {name: value or "" for name, value in attrs}
        if tag == "details":
            self._questions.append("danger" in attributes.get("class", "").split())
        if tag == "form" and attributes.get("method") == "post":
            self.found.append((attributes.get("action", ""), any(self._questions), ""))
        if tag == "button" and self.found:
            action, asks, _ = self.found[-1]
            self.found[-1] = (action, asks, attributes.get("value", ""))

    def handle_endtag(self, tag: str) -> None:
        """Leave a question."""
        if tag == "details":
            self._questions.pop()


def test_every_form_is_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A form that is added asks, or has its reason not to."""
    monkeypatch.chdir(tmp_path)
    posts = [place.path for place in all_places() if place.method == "POST"]
    found = {path for path in posts if path.startswith(("/panel/", "/admin/"))}
    assert found == ASKS | set(HARMLESS)
    assert not ASKS & set(HARMLESS)


@sqlite_only
@pytest.mark.parametrize("site", PAGES)
def test_what_ends_something_asks_first(service: RunningService, site: str) -> None:
    """Its form stands behind a question on every page that has it; to make an account active again is no ending."""
    person = holder(service)
    key = service.provisioning.create_key(person.account_id, name="k").key
    visitor: Visitor = person.visitor if site == "/panel" else operator(service).visitor
    if site == "/panel":  # so that there is another one to be ended
        Visitor(service).send("/panel/sign-in", email=person.email, password=PASSWORD)
    tried = set()
    for status in (AccountStatus.ACTIVE, AccountStatus.INACTIVE):
        service.provisioning.set_account(person.account_id, status=status)
        for path in PAGES[site]:
            page = visitor.get(site + path.replace("ACCOUNT", person.account_id).replace("KEY", key.id))
            assert page.status == 200
            for action, asks, value in Forms(page.answer.body.decode()).found:
                route = action.replace(person.account_id, "{account_id}").replace(key.id, "{key_id}").partition("#")[0]
                tried.add(route)
                assert asks or route not in ASKS or value == "active", route
    assert {route for route in ASKS if route.startswith(site)} - tried <= {"/admin/settings/sessions/end-others"}


@pytest.mark.parametrize("notice", [*NOTICES, *WITH_FIGURES])
def test_what_has_ended_is_told_in_amber(notice: str) -> None:
    """Every notice of an ending is a warning, and no other is."""
    ends = notice.endswith(("-paused", "-revoked", "-stopped", "-ended", "-removed", "-over")) or notice in {
        "holder-signed-out",
        "email-changed",
    }
    assert (notice in WARNINGS) == ends
