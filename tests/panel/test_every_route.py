"""Every route of the panel and of the operators' pages against every kind of caller, made from the route table."""

from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

import pytest
from msgspec import Struct

from tarazu.domain.admin_tokens import Scope
from tarazu.panel.sites import HOLDERS, OPERATORS, Site
from tests.support.books import sqlite_only
from tests.support.routes import Place, all_places
from tests.support.service import RunningService
from tests.support.visitor import Holder, Operator, Page, Visitor, holder, operator

OPEN = ("/sign-in", "/sign-in/code", "/sign-out", "/invitation/{token}", "/language", "/static/{name}")
"""What is for everybody: the way in and out, the language, the looks."""
NOTHING = {"account_id": "acc_00000000000000", "key_id": "key_000000000000", "model_id": "none"}
"""Ids of nothing."""
FIELDS = {"name": "n", "grace": "0", "status": "active", "credits": "1", "reference": "r", "why": "w"}
"""What any of the forms that are about something takes."""
SITES = {"holders": HOLDERS, "operators": OPERATORS}


class Cast(Struct, frozen=True):
    """Who plays: two customers, an operator, and the books that they are in."""

    service: RunningService
    sara: Holder
    nima: Holder
    ada: Operator
    sara_ids: dict[str, str]


@pytest.fixture(scope="module")
def cast(service: RunningService) -> Cast:
    """Bring them on."""
    sara, nima, ada = holder(service), holder(service), operator(service)
    key = service.provisioning.create_key(sara.account_id, name="laptop").key
    return Cast(service, sara, nima, ada, {**NOTHING, "account_id": sara.account_id, "key_id": key.id})


@pytest.fixture
def closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Site], list[Place]]:
    """List the routes of a site that are not for everybody."""
    monkeypatch.chdir(tmp_path)
    places = all_places()

    def closed(site: Site) -> list[Place]:
        own = [place for place in places if place.path.startswith(f"{site.path}/")]
        found = [place for place in own if place.path.removeprefix(site.path) not in OPEN]
        assert len(found) >= 15
        return found

    return closed


@sqlite_only
@pytest.mark.parametrize("name", SITES)
def test_nobody_gets_past_the_door(cast: Cast, closed: Callable[[Site], list[Place]], name: str) -> None:
    """Each route leads to the door: with the other site's session, one that has ended, a key or a token, or nothing."""
    site = SITES[name]
    strangers = {
        "without anything": Visitor(cast.service),
        "with the other site's session": _with_cookie(cast, site, _other_secret(cast, site)),
        "with an ended session": _with_cookie(cast, site, _ended_secret(cast, site)),
        "with a made-up session": _with_cookie(cast, site, "x" * 43),
    }
    tokens = [cast.service.provisioning.create_admin_token(name="t", scopes=list(Scope)).secret]
    tokens += [cast.service.customer().secret]
    for place in closed(site):
        for who, visitor in strangers.items():
            assert _is_shown_the_door(_ask(visitor, place, cast.sara_ids), site), (place, who)
        for token in tokens:
            answer = _ask(Visitor(cast.service), place, cast.sara_ids, authorization=f"Bearer {token}")
            assert _is_shown_the_door(answer, site), place


def test_another_accounts_ids_are_those_of_nothing(cast: Cast, closed: Callable[[Site], list[Place]]) -> None:
    """What Nima is told of Sara's things is what he is told of what is not there, to the last byte."""
    with_ids = [place for place in closed(HOLDERS) if "{key_id}" in place.path]
    assert len(with_ids) >= 4
    before = cast.service.provisioning.keys(cast.sara.account_id)
    for place in with_ids:
        cast.nima.visitor.get("/panel/keys")  # for the word of the session
        hers = _ask(cast.nima.visitor, place, cast.sara_ids)
        none = _ask(cast.nima.visitor, place, NOTHING)
        assert hers.status == none.status == 404, place
        assert _without_ids(hers, cast.sara_ids) == _without_ids(none, NOTHING), place
    assert cast.service.provisioning.keys(cast.sara.account_id) == before


def test_an_operator_finds_what_is_there_and_nothing_else(cast: Cast, closed: Callable[[Site], list[Place]]) -> None:
    """Each page opens for an operator; with ids of nothing it is not there."""
    for place in closed(OPERATORS):
        if place.method == "GET":
            assert _ask(cast.ada.visitor, place, cast.sara_ids).status == 200, place
        if "{" in place.path:
            cast.ada.visitor.get("/admin/accounts")
            assert _ask(cast.ada.visitor, place, NOTHING).status == 404, place


def _ask(visitor: Visitor, place: Place, ids: dict[str, str], **headers: str) -> Page:
    path = place.path.format(**ids)
    if place.method == "GET":
        return visitor.get(path, **headers)
    return visitor.send_body(path, urlencode({"csrf": visitor.csrf, **FIELDS}), **headers)


def _is_shown_the_door(page: Page, site: Site) -> bool:
    return page.status == 303 and page.leads_to.startswith(site.url("/sign-in"))


def _with_cookie(cast: Cast, site: Site, secret: str) -> Visitor:
    visitor = Visitor(cast.service)
    visitor.cookies[site.cookie] = secret
    return visitor


def _other_secret(cast: Cast, site: Site) -> str:
    other = cast.ada.visitor if site is HOLDERS else cast.sara.visitor
    return next(secret for name, secret in other.cookies.items() if name != site.cookie)


def _ended_secret(cast: Cast, site: Site) -> str:
    visitor = (holder if site is HOLDERS else operator)(cast.service).visitor
    secret = visitor.cookies[site.cookie]
    visitor.get(site.url("/settings"))
    visitor.send(site.url("/sign-out"))
    return secret


def _without_ids(page: Page, ids: dict[str, str]) -> str:
    text = page.answer.body.decode()
    for value in ids.values():
        text = text.replace(value, "")
    return text
