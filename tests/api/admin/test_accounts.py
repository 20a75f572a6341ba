"""Accounts: open, show, find and change them; let their holders in and out."""

import os
import re
from functools import partial

import pytest

from tarazu.domain.people import PersonKind
from tarazu.domain.sessions import Session
from tarazu.store.engine import transaction
from tarazu.store.sessions import insert_session
from tarazu.store.trail import Via
from tests.support.admin import AdminClient
from tests.support.answers import look
from tests.support.at_once import at_once
from tests.support.envelopes import assert_domain_error
from tests.support.service import RunningService

pytestmark = pytest.mark.both_stores

HOUR_MS = 3_600_000


def test_an_account_is_opened(service: RunningService, admin: AdminClient) -> None:
    """It is in the books as it was sent, and the trail says which program has opened it."""
    created = admin.create("/accounts", {"name": " Ada ", "email": "OPENED@example.com", "plan": "basic"})
    assert {name: created[name] for name in ("name", "email", "plan", "status", "used", "limit", "balance")} == {
        "name": "Ada",
        "email": "opened@example.com",
        "plan": "basic",
        "status": "active",
        "used": 0,
        "limit": 10,
        "balance": 0,
    }
    assert service.provisioning.account(created["id"]).email == "opened@example.com"
    [act] = admin.acts(created["id"])
    assert (act.act, act.via) == ("account.create", Via.TOKEN)
    assert admin.get(f"/accounts/{created['id']}") == created


def test_it_shows_what_the_command_shows(service: RunningService, admin: AdminClient) -> None:
    """Member for member."""
    account_id = admin.new_account()
    assert admin.get(f"/accounts/{account_id}") == service.json("account", "show", account_id)


def test_an_email_is_changed(service: RunningService, admin: AdminClient) -> None:
    """To one that no other account has, in its one form; the trail tells both."""
    first, second = (admin.ask("POST", "/accounts", {"name": "Ada"}).json["id"] for _ in range(2))
    changed = admin.ask("PATCH", f"/accounts/{first}", {"email": f"{first}@Example.com"})
    assert (changed.status, changed.json["email"]) == (200, f"{first}@example.com".lower())
    assert admin.ask("PATCH", f"/accounts/{second}", {"email": f"{first}@example.com"}).status == 409
    assert admin.ask("PATCH", f"/accounts/{second}", {"email": "nowhere"}).status == 422
    assert admin.ask("PATCH", f"/accounts/{second}", {"name": "Second"}).json["name"] == "Second"
    assert admin.ask("PATCH", f"/accounts/{second}", {"name": " "}).status == 422
    assert service.provisioning.account(second).email is None
    assert admin.acts(first)[0].detail == {"email": [None, f"{first}@example.com".lower()]}


def test_plan_and_status_are_changed(service: RunningService, admin: AdminClient) -> None:
    """Each alone, null is no plan, and what is left out stays; the key works or does not from the next request on."""
    customer = service.customer("large")
    path = f"/accounts/{customer.account_id}"
    assert service.chat(customer).status == 200
    changed = admin.ask("PATCH", path, {"status": "blocked"}).json
    assert (changed["plan"], changed["status"]) == ("large", "blocked")
    assert_domain_error(service.chat(customer), 403, "account_unavailable")
    changed = admin.ask("PATCH", path, {"plan": None, "status": "active"}).json
    assert (changed["plan"], changed["status"], changed["limit"]) == (None, "active", 0)
    assert_domain_error(service.chat(customer), 402, "upgrade_required")
    assert admin.ask("PATCH", path, {"plan": "basic"}).json["limit"] == 10
    details = [act.detail for act in admin.acts(customer.account_id)]
    assert details == [
        {"plan": [None, "basic"]},
        {"plan": ["large", None], "status": ["blocked", "active"]},
        {"status": ["active", "blocked"]},
    ]


def test_a_change_of_nothing_changes_nothing(admin: AdminClient) -> None:
    """An empty object is a change too, and leaves no act."""
    account_id = admin.new_account()
    before = admin.get(f"/accounts/{account_id}")
    assert admin.ask("PATCH", f"/accounts/{account_id}", {}).json == before
    assert [act.act for act in admin.acts(account_id)] == ["account.create"]


def test_changes_at_once_all_stay(admin: AdminClient) -> None:
    """One who changes the plan and one who changes the status do not undo each other's change."""
    for _ in range(10):
        account_id = admin.new_account()
        changes = ({"plan": None}, {"status": "inactive"})
        at_once([partial(admin.ask, "PATCH", f"/accounts/{account_id}", change) for change in changes])
        account = admin.get(f"/accounts/{account_id}")
        assert (account["plan"], account["status"]) == (None, "inactive")


@pytest.mark.parametrize("word", ["id", "a part of the name", "the name in capitals", "a part of the email", "Persian"])
def test_an_account_is_found(admin: AdminClient, word: str) -> None:
    """By its id, or by some letters of its name or email, in either case."""
    mark = f"mark{word.replace(' ', '')}".lower()
    account_id = admin.new_account(name=f"Zoë {mark} آدا{mark}", email=f"{mark}@shop.example")
    searches = {
        "id": account_id,
        "a part of the name": mark[1:],
        "the name in capitals": mark.upper(),
        "a part of the email": f"{mark}@shop",
        "Persian": f"%D8%A7{mark}",
    }
    found = admin.get(f"/accounts?search={searches[word]}")
    assert [account["id"] for account in found["data"]] == [account_id]
    assert (found["limit"], found["more"]) == (50, False)


@pytest.mark.parametrize(("sign", "sent"), [("%", "%25"), ("_", "_"), ("\\", "%5C")])
def test_signs_of_the_query_language_are_letters_like_others(admin: AdminClient, sign: str, sent: str) -> None:
    """A per cent sign, an underscore and a backslash find themselves and nothing else."""
    mark = f"sign{ord(sign)}"
    admin.new_account(name=f"{mark} x and y")
    account_id = admin.new_account(name=f"{mark} x{sign} and y")
    found = admin.get(f"/accounts?search={mark}%20x{sent}")["data"]
    assert [account["id"] for account in found] == [account_id]


def test_pages(admin: AdminClient) -> None:
    """Each account once, newest first; the limit is echoed."""
    ids = {admin.new_account(name=f"page {number}") for number in range(5)}
    path = "/accounts?search=page&limit=2"
    first = admin.get(path)
    second = admin.get(f"{path}&before={first['data'][-1]['id']}")
    third = admin.get(f"{path}&before={second['data'][-1]['id']}")
    pages = [first, second, third]
    assert [len(page["data"]) for page in pages] == [2, 2, 1]
    assert [page["more"] for page in pages] == [True, True, False]
    assert {page["limit"] for page in pages} == {2}
    walked = [account for page in pages for account in page["data"]]
    assert {account["id"] for account in walked} == ids
    times = [account["created_at"] for account in walked]
    assert times == sorted(times, reverse=True)
    assert admin.get(f"{path}&before={walked[-1]['id']}")["data"] == []


def test_a_page_that_cannot_be(admin: AdminClient) -> None:
    """Before an account that is not there."""
    assert_domain_error(admin.ask("GET", "/accounts?before=acc_00000000000000"), 404, "not_found")


def test_a_holder_is_invited(service: RunningService, admin: AdminClient) -> None:
    """The link leads to the panel; a new one is another; the trail has the act and not the link."""
    account_id = admin.new_account(email="holder@example.com")
    links = [admin.create(f"/accounts/{account_id}/invitation")["url"] for _ in range(2)]
    for link in links:
        assert re.fullmatch(rf"http://127\.0\.0\.1:{service.port}/panel/invitation/[0-9A-Za-z]+", link)
    assert links[0] != links[1]
    assert look(service, "SELECT count(*) FROM invitations WHERE account_id = :id", id=account_id) == [(1,)]
    first, second, _ = admin.acts(account_id)
    assert (first.act, second.act) == ("account.invite", "account.invite")
    assert links[1].rpartition("/")[2] not in str(first.detail)


def test_who_cannot_sign_in_is_not_invited(admin: AdminClient) -> None:
    """Nobody without an email, and nobody who is blocked."""
    for account_id in (admin.new_account(), admin.new_account(email="blocked@example.com", status="blocked")):
        assert_domain_error(admin.ask("POST", f"/accounts/{account_id}/invitation"), 409, "conflict")


def test_a_holder_is_signed_out(service: RunningService, admin: AdminClient) -> None:
    """All sessions of the account are ended and counted, and no other's."""
    account_id, other = (admin.new_account(email=f"{name}@example.com") for name in ("out", "in"))
    now_ms = service.clock()
    with transaction(service.engine) as connection:
        for owner in (account_id, account_id, other):
            session = Session(
                digest=os.urandom(32),
                kind=PersonKind.HOLDER,
                person_id=owner,
                created_at_ms=now_ms,
                seen_at_ms=now_ms,
                expires_at_ms=now_ms + HOUR_MS,
            )
            insert_session(connection, session)
    answer = admin.ask("POST", f"/accounts/{account_id}/sign-out")
    assert answer.json == {"account_id": account_id, "sessions": 2}
    assert look(service, "SELECT account_id FROM sessions") == [(other,)]
    assert admin.acts(account_id)[0].act == "account.sign_out"
