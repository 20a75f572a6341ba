"""What answers a form can be loaded again, in either language, and does nothing once more; nothing written is lost."""

import json
import re
import sqlite3
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tarazu.panel.kept import Kept, seal
from tarazu.panel.sites import HOLDERS, OPERATORS, Site
from tests.support.books import sqlite_only
from tests.support.routes import all_places
from tests.support.service import RunningService
from tests.support.visitor import PASSWORD, Holder, Operator, Visitor, holder, operator

KEY = re.compile(r"trz_[0-9A-Za-z]{50}")
LINK = re.compile(r"http://127\.0\.0\.1:\d+/panel/invitation/\w+")
FIELDS = {
    "name": "n",
    "grace": "0",
    "status": "active",
    "credits": "1",
    "reference": "r",
    "why": "w",
    "language": "en",
    "retry_after_s": "60",
    "conversation": "[]",
}
"""What any of the forms takes that are about something."""
NO_PAGE = (HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT)
"""How a form is refused that no page of ours has sent, that has no page, or that is about nothing."""


@sqlite_only
@pytest.mark.parametrize("site", [HOLDERS, OPERATORS], ids=["holders", "operators"])
def test_every_form_is_followed_by_a_redirect(
    service: RunningService, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Taken or refused, filled in or empty, in a session, after its end, or in one that has begun since."""
    monkeypatch.chdir(tmp_path)
    places = [place for place in all_places() if place.method == "POST" and place.path.startswith(f"{site.path}/")]
    assert len(places) >= 15
    customer = holder(service)
    key = service.provisioning.create_key(customer.account_id, name="k").key
    ids = {"account_id": customer.account_id, "key_id": key.id, "token": "none"}
    person: Holder | Operator = customer if site is HOLDERS else operator(service)
    redirects = 0
    for place in places:
        for fields in (FIELDS, {}, dict.fromkeys(FIELDS, "?")):
            for session in ("live", "over", "another"):
                visitor = person.visitor
                if visitor.get(f"{site.path}/settings").status != HTTPStatus.OK:  # the last form has ended it
                    person = (holder if site is HOLDERS else operator)(service)
                    visitor = person.visitor
                    visitor.get(f"{site.path}/settings")
                cookies, word = dict(visitor.cookies), "?" if session == "another" else visitor.csrf
                if session == "over":
                    visitor.cookies[site.cookie] = "x" * 43
                form = urlencode({**fields, "key": key.id, "csrf": word})
                answer = visitor.send_body(place.path.format(**ids), form).answer
                visitor.cookies = cookies if session == "over" else visitor.cookies
                assert answer.status == HTTPStatus.SEE_OTHER or answer.status in NO_PAGE, (place, fields, session)
                redirects += answer.status == HTTPStatus.SEE_OTHER
    assert redirects > len(places) * 9 * 0.8
    service.provisioning.resume_intake()


@pytest.mark.parametrize(("languages", "said"), [(("en", "fa"), "همین حالا"), (("fa", "en"), "Copy it now")])
def test_what_is_shown_once_is_shown_until_it_is_left(
    service: RunningService, languages: tuple[str, str], said: str
) -> None:
    """A new key, one that replaces another, and an invitation: by reload, by Back, and in the other language."""
    person, clerk = holder(service, language=languages[0]), operator(service, language=languages[0])
    key = service.provisioning.create_key(person.account_id, name="k").key
    account = f"/admin/accounts/{person.account_id}"
    for visitor, path, fields, secret in (
        (person.visitor, "/panel/keys/new", {"name": "a"}, KEY),
        (person.visitor, f"/panel/keys/{key.id}/replace", {"grace": "3600"}, KEY),
        (clerk.visitor, f"{account}/keys/new", {"name": "b"}, KEY),
        (clerk.visitor, f"{account}/invite", {}, LINK),
    ):
        visitor.language = languages[0]
        visitor.get(path)
        before = len(service.provisioning.keys(person.account_id))
        form = urlencode({"csrf": visitor.csrf, **fields})
        shown = visitor.send_body(path, form).leads_to
        (first,) = set(secret.findall(visitor.get(shown).text))
        visitor.language = languages[1]
        for _ in range(2):
            page = visitor.get(shown)
            assert set(secret.findall(page.text)) == {first}
            assert said in page.text
            assert page.field("next") == shown  # where the language switch leads back to
        assert len(service.provisioning.keys(person.account_id)) == before + (secret is KEY)
        visitor.send(shown.partition("?")[0])
        assert secret.findall(visitor.get(shown).text) == []


def test_nobody_else_is_shown_it(service: RunningService) -> None:
    """Not in another session of the same person, and not under another address."""
    person = holder(service)
    visitor = person.visitor
    visitor.get("/panel/keys/new")
    shown = visitor.send_body("/panel/keys/new", urlencode({"csrf": visitor.csrf, "name": "k"})).leads_to
    assert KEY.search(visitor.get(shown).text)
    assert not KEY.search(visitor.get(shown.partition("?")[0]).text)
    other = Visitor(service)
    other.get("/panel/sign-in")
    other.send("/panel/sign-in", email=person.email, password=PASSWORD)
    other.kept = visitor.kept
    page = other.get(shown)
    assert page.status == HTTPStatus.OK
    assert not KEY.search(page.text)
    assert "cannot be shown again" in page.text


def test_a_refused_form_is_offered_again_as_it_was_written(service: RunningService) -> None:
    """By its address, as often as it is loaded; opened anew it is empty."""
    visitor = holder(service).visitor
    visitor.get("/panel/keys/new")
    sent = {
        "csrf": visitor.csrf,
        "name": "night job",
        "days": "day",
        "until": "some",
        "models": ["test/one", "test/two"],
    }
    offered = visitor.send_body("/panel/keys/new", urlencode(sent, doseq=True)).leads_to
    for _ in range(2):
        page = visitor.get(offered)
        assert page.status == HTTPStatus.UNPROCESSABLE_ENTITY
        assert "Write dates as year, month and day" in page.text
        assert [page.field(name) for name in ("name", "until")] == ["night job", "some"]
        assert page.html is not None
        chosen = [a["value"] for _, a in page.html.elements if a.get("name") == "models" and "checked" in a]
        assert sorted(chosen) == ["test/one", "test/two"]
    assert visitor.get("/panel/keys/new").field("name") == ""


def test_a_form_that_no_cookie_holds_is_offered_at_once(service: RunningService) -> None:
    """Nothing of it is cut."""
    visitor = holder(service).visitor
    visitor.get("/panel/keys/new")
    name = "".join(map(chr, range(0x4E00, 0x4E00 + 3_000)))
    refused = visitor.send_body("/panel/keys/new", urlencode({"csrf": visitor.csrf, "name": name}))
    assert refused.status == HTTPStatus.UNPROCESSABLE_ENTITY
    assert refused.field("name") == name


@pytest.mark.parametrize("path", ["/panel/keys/new", "/panel/settings/name", "/panel/playground"])
def test_what_was_written_outlives_the_session(service: RunningService, path: str) -> None:
    """It is said that the session has ended; whoever signs in is back at the form, and sends it."""
    person = holder(service)
    service.provisioning.create_key(person.account_id, name="k")
    visitor = person.visitor
    visitor.get(path)
    service.provisioning.sign_out_holder(person.account_id)
    form = {"csrf": visitor.csrf, "name": "night job", "prompt": "a long story", "conversation": "[]"}
    door = visitor.follow(visitor.send_body(path, urlencode(form)))
    assert "Your session has ended." in door.text
    entered = visitor.send("/panel/sign-in", email=person.email, password=PASSWORD, next=door.field("next"))
    page = visitor.follow(entered)
    assert page.status == HTTPStatus.OK
    assert "night job" in page.answer.body.decode() or "a long story" in page.text


def test_a_message_outlives_the_session_where_its_conversation_is_too_long(service: RunningService) -> None:
    """What no cookie holds is left out, the longest first."""
    person = holder(service)
    service.provisioning.create_key(person.account_id, name="k")
    visitor = person.visitor
    visitor.get("/panel/playground")
    service.provisioning.sign_out_holder(person.account_id)
    said = "".join(map(chr, range(0x4E00, 0x4E00 + 7 * 1_400, 7)))
    assert seal(Kept(fields=(("conversation", said),)), "", "") is None
    conversation = json.dumps([{"role": "user", "content": said}], ensure_ascii=False)
    form = urlencode({"csrf": visitor.csrf, "prompt": "a long story", "conversation": conversation})
    door = visitor.follow(visitor.send_body("/panel/playground", form))
    entered = visitor.send("/panel/sign-in", email=person.email, password=PASSWORD, next=door.field("next"))
    assert "a long story" in visitor.follow(entered).text


def test_a_form_of_an_earlier_session_is_offered_again(service: RunningService) -> None:
    """In another tab somebody has signed in again: the form of the first is not taken, and not lost."""
    visitor = holder(service).visitor
    visitor.get("/panel/keys/new")
    offered = visitor.send("/panel/keys/new", csrf="x" * 43, name="night job")
    assert offered.status == HTTPStatus.FORBIDDEN
    assert "signed in again" in offered.text
    assert offered.field("name") == "night job"
    taken = visitor.send("/panel/keys/new", name=offered.field("name"))
    assert KEY.search(taken.text)


@sqlite_only
def test_a_form_that_comes_while_the_books_are_away_is_offered_again(service: RunningService) -> None:
    """Nothing was done; sent once more, it is."""
    person = holder(service)
    visitor = person.visitor
    visitor.get("/panel/keys/new")
    writer = sqlite3.connect(str(service.engine.url.database), isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    offered = visitor.send("/panel/keys/new", name="night job")
    writer.execute("ROLLBACK")
    writer.close()
    assert offered.status == HTTPStatus.SERVICE_UNAVAILABLE
    assert "nothing was changed" in offered.text
    assert service.provisioning.keys(person.account_id) == []
    assert KEY.search(visitor.send("/panel/keys/new", name=offered.field("name")).text)
