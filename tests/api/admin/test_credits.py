"""Credits: top-ups, adjustments, and the history of both."""

from collections import Counter
from functools import partial

import pytest

from tarazu.store.trail import Via
from tests.support.admin import AdminClient
from tests.support.at_once import at_once
from tests.support.envelopes import assert_domain_error
from tests.support.service import RunningService

pytestmark = pytest.mark.both_stores


def test_a_payment_is_added_once(service: RunningService, admin: AdminClient) -> None:
    """The first answers 201, the same again 200 with the first; who did it stands in the books and in the trail."""
    account_id = admin.new_account()
    body = {"credits": 500, "reference": f"invoice of {account_id}", "note": "for May"}
    first = admin.create(f"/accounts/{account_id}/topups", body)
    assert (first["credits"], first["note"], first["made_by"]) == (500, "for May", admin.name)
    assert (first["added"], first["balance"]) == (True, 500)
    again = admin.ask("POST", f"/accounts/{account_id}/topups", body)
    assert again.status == 200
    assert again.json == {**first, "added": False}
    assert service.provisioning.account(account_id).balance == 500
    act = admin.acts(account_id)[0]
    assert (act.act, act.via, act.subject) == ("credit.add", Via.TOKEN, first["id"])
    assert len(admin.acts(account_id)) == 2


def test_a_payment_that_is_sent_twenty_times_at_once_is_added_once(service: RunningService, admin: AdminClient) -> None:
    """One of them answers 201, all others 200 with the same top-up."""
    account_id = admin.new_account()
    body = {"credits": 7, "reference": f"twenty of {account_id}"}
    answers = at_once([partial(admin.ask, "POST", f"/accounts/{account_id}/topups", body)] * 20)
    assert Counter(answer.status for answer in answers) == {201: 1, 200: 19}
    assert len({answer.json["id"] for answer in answers}) == 1
    assert service.provisioning.account(account_id).balance == 7


def test_a_reference_that_was_used_otherwise(admin: AdminClient) -> None:
    """Another amount, another account, another kind: 409, and nothing is changed."""
    account_id, other = admin.new_account(), admin.new_account()
    reference = f"used by {account_id}"
    admin.create(f"/accounts/{account_id}/topups", {"credits": 5, "reference": reference})
    for path, body in (
        (f"/accounts/{account_id}/topups", {"credits": 6, "reference": reference}),
        (f"/accounts/{other}/topups", {"credits": 5, "reference": reference}),
        (f"/accounts/{account_id}/adjustments", {"credits": 5, "reason": "x", "reference": reference}),
    ):
        answer = admin.ask("POST", path, body)
        assert assert_domain_error(answer, 409, "conflict") == {"member": "reference"}
    assert [admin.get(f"/accounts/{each}")["balance"] for each in (account_id, other)] == [5, 0]


def test_a_balance_is_corrected(admin: AdminClient) -> None:
    """Up and down, each time without a reference, once with it, and never below zero."""
    account_id = admin.new_account()
    path = f"/accounts/{account_id}/adjustments"
    for _ in range(2):
        assert admin.create(path, {"credits": 10, "reason": "outage"})["adjusted"] is True
    body = {"credits": -5, "reason": "paid twice", "reference": f"once for {account_id}"}
    first = admin.create(path, body)
    assert (first["balance"], first["reason"], first["made_by"]) == (15, "paid twice", admin.name)
    assert admin.ask("POST", path, body).json == {**first, "adjusted": False}
    answer = admin.ask("POST", path, {"credits": -16, "reason": "too much"})
    assert assert_domain_error(answer, 409, "conflict") == {"member": "credits"}
    assert [act.act for act in admin.acts(account_id)] == ["credit.adjust"] * 3 + ["account.create"]


def test_the_history_comes_in_pages(service: RunningService, admin: AdminClient) -> None:
    """Newest first, each change once, as the command shows it."""
    account_id = admin.new_account()
    for number in range(3):
        admin.create(f"/accounts/{account_id}/topups", {"credits": 1, "reference": f"{number} of {account_id}"})
    path = f"/accounts/{account_id}/credits?limit=2"
    first = admin.get(path)
    second = admin.get(f"{path}&before={first['data'][-1]['id']}")
    assert (first["limit"], first["more"], second["more"], first["balance"]) == (2, True, False, 3)
    shown = service.json("credit", "history", account_id)
    assert first["data"] + second["data"] == shown["changes"]
    assert_domain_error(admin.ask("GET", f"{path}&before=top_00000000000000"), 404, "not_found")


@pytest.mark.parametrize("path", ["topups", "adjustments"])
def test_an_account_that_is_not_there(admin: AdminClient, path: str) -> None:
    """404, and the reference is free."""
    body = {"credits": 5, "reference": f"lost {path}"} | ({"reason": "x"} if path == "adjustments" else {})
    assert_domain_error(admin.ask("POST", f"/accounts/acc_00000000000000/{path}", body), 404, "not_found")
    admin.create(f"/accounts/{admin.new_account()}/{path}", body)
