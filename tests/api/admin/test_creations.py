"""Accounts and keys are created once for each reference, however often it is sent."""

from collections import Counter
from functools import partial

import pytest

from tests.support.admin import AdminClient
from tests.support.answers import look
from tests.support.at_once import at_once
from tests.support.envelopes import assert_domain_error
from tests.support.service import Customer, RunningService

pytestmark = pytest.mark.both_stores


def test_the_same_account_again(service: RunningService, admin: AdminClient) -> None:
    """The first answers 201, the same again 200 with the account as it is by then, and it is one act."""
    body = {"name": "Ada", "email": "again@example.com", "plan": "large", "reference": "account again"}
    first = admin.create("/accounts", body)
    admin.create(f"/accounts/{first['id']}/topups", {"credits": 5, "reference": "topup of again"})
    again = admin.ask("POST", "/accounts", body)
    assert again.status == 200
    assert again.json == {**first, "balance": 5}
    assert [act.act for act in admin.acts(first["id"])] == ["credit.add", "account.create"]
    assert look(service, "SELECT count(*) FROM accounts WHERE email = :email", email=body["email"]) == [(1,)]


def test_the_same_key_again(service: RunningService, admin: AdminClient) -> None:
    """The second answer is of the same key, without its secret; the first secret works."""
    path = f"/accounts/{admin.new_account()}/keys"
    first = admin.create(path, {"name": "laptop", "reference": "key again"})
    again = admin.ask("POST", path, {"name": "laptop", "reference": "key again"})
    assert again.status == 200
    assert again.json == {**first, "secret": None}
    assert len(admin.get(path)["data"]) == 1
    assert service.chat(Customer("", first["id"], first["secret"])).status == 200


def test_an_account_that_is_asked_for_twenty_times_at_once(service: RunningService, admin: AdminClient) -> None:
    """One is opened, and all answers are about it."""
    body = {"name": "Twenty", "reference": "account of twenty"}
    answers = at_once([partial(admin.ask, "POST", "/accounts", body)] * 20)
    assert Counter(answer.status for answer in answers) == {201: 1, 200: 19}
    assert len({answer.json["id"] for answer in answers}) == 1
    assert look(service, "SELECT count(*) FROM accounts WHERE name = 'Twenty'") == [(1,)]


def test_a_key_that_is_asked_for_twenty_times_at_once(admin: AdminClient) -> None:
    """One is issued, and one answer alone has its secret."""
    path = f"/accounts/{admin.new_account()}/keys"
    body = {"name": "laptop", "reference": "key of twenty"}
    answers = at_once([partial(admin.ask, "POST", path, body)] * 20)
    assert Counter(answer.status for answer in answers) == {201: 1, 200: 19}
    assert len({answer.json["id"] for answer in answers}) == 1
    assert sum(answer.json["secret"] is not None for answer in answers) == 1
    assert len(admin.get(path)["data"]) == 1


def test_an_email_that_is_asked_for_twenty_times_at_once(admin: AdminClient) -> None:
    """Without a reference one account gets it; the others are told that it is taken."""
    answers = at_once([partial(admin.ask, "POST", "/accounts", {"name": "x", "email": "one@example.com"})] * 20)
    assert Counter(answer.status for answer in answers) == {201: 1, 409: 19}
    for answer in answers:
        if answer.status == 409:
            assert assert_domain_error(answer, 409, "conflict") == {"member": "email"}


@pytest.mark.parametrize(
    "other",
    [
        {"name": "Bob"},
        {"email": "other@example.com"},
        {"plan": None},
        {"plan": "basic"},
        {"status": "inactive"},
    ],
)
def test_an_account_with_other_values(admin: AdminClient, other: dict[str, object]) -> None:
    """The same reference with anything else is 409, and nothing is opened."""
    body = {"name": "Ada", "plan": "large", "reference": f"other values {other}"}
    admin.create("/accounts", body)
    before = len(admin.get("/accounts?limit=1000")["data"])
    answer = admin.ask("POST", "/accounts", body | other)
    assert assert_domain_error(answer, 409, "conflict") == {"member": "reference"}
    assert len(admin.get("/accounts?limit=1000")["data"]) == before


@pytest.mark.parametrize(
    "other", [{"name": "phone"}, {"models": ["test/one"]}, {"limit_per_minute": 5}, {"expires_in_s": 60}]
)
def test_a_key_with_other_values(admin: AdminClient, other: dict[str, object]) -> None:
    """The same reference with anything else is 409, and nothing is issued."""
    path = f"/accounts/{admin.new_account()}/keys"
    body: dict[str, object] = {"name": "laptop", "reference": f"other key {other}"}
    admin.create(path, body)
    answer = admin.ask("POST", path, body | other)
    assert assert_domain_error(answer, 409, "conflict") == {"member": "reference"}
    assert len(admin.get(path)["data"]) == 1


def test_a_reference_stands_for_one_thing(admin: AdminClient) -> None:
    """Neither for a key of another account, nor for an account where it has made a key; for a top-up all the same."""
    first, second = admin.new_account(), admin.new_account()
    admin.create(f"/accounts/{first}/keys", {"name": "laptop", "reference": "one thing"})
    for path in (f"/accounts/{second}/keys", "/accounts"):
        answer = admin.ask("POST", path, {"name": "laptop", "reference": "one thing"})
        assert_domain_error(answer, 409, "conflict")
    admin.create(f"/accounts/{first}/topups", {"credits": 5, "reference": "one thing"})


def test_what_cannot_be_created_leaves_its_reference_free(admin: AdminClient) -> None:
    """A plan that there is not is put right, and the same reference is sent again."""
    body = {"name": "Ada", "reference": "put right"}
    assert_domain_error(admin.ask("POST", "/accounts", {**body, "plan": "nothing"}), 422, "invalid_value")
    admin.create("/accounts", {**body, "plan": "basic"})
