"""Keys: issue, show, list, revoke and replace them."""

import pytest

from tarazu.store.trail import Via
from tests.support.admin import AdminClient
from tests.support.answers import look
from tests.support.envelopes import assert_domain_error
from tests.support.service import Customer, RunningService

pytestmark = pytest.mark.both_stores


def issued(admin: AdminClient, account_id: str, **values: object) -> Customer:
    """Issue a key over the API."""
    created = admin.create(f"/accounts/{account_id}/keys", {"name": "laptop", **values})
    return Customer(account_id, created["id"], created["secret"])


def test_a_key_is_issued_and_works(service: RunningService, admin: AdminClient) -> None:
    """With all that was asked for; the whole key is in this answer and in no other."""
    account_id = admin.new_account()
    values = {"name": "laptop", "models": ["test/one", "test/one"], "limit_per_minute": 2, "expires_in_s": 3_600}
    created = admin.create(f"/accounts/{account_id}/keys", values)
    assert (created["models"], created["limit_per_minute"], created["state"]) == (["test/one"], 2, "active")
    assert created["expires_at"] > created["created_at"]
    customer = Customer(account_id, created["id"], created.pop("secret"))
    assert service.chat(customer, model="test/one").status == 200
    assert_domain_error(service.chat(customer, model="test/two"), 404, "model_not_found")
    assert_domain_error(service.chat(customer, model="test/one"), 429, "rate_limit_exceeded")
    assert admin.get(f"/keys/{customer.key_id}") == created
    assert admin.get(f"/accounts/{account_id}/keys")["data"] == [created]
    act = admin.acts(account_id)[0]
    assert (act.act, act.subject, act.via) == ("key.create", customer.key_id, Via.TOKEN)


def test_it_shows_what_the_command_shows(service: RunningService, admin: AdminClient) -> None:
    """Member for member."""
    account_id = admin.new_account()
    issued(admin, account_id)
    assert admin.get(f"/accounts/{account_id}/keys")["data"] == service.json("key", "list", account_id)


def test_a_key_is_revoked(service: RunningService, admin: AdminClient) -> None:
    """From the next request on; again it stays as it is, and is one act."""
    customer = issued(admin, admin.new_account())
    assert service.chat(customer).status == 200
    revoked = admin.ask("POST", f"/keys/{customer.key_id}/revoke").json
    assert revoked["state"] == "revoked"
    assert_domain_error(service.chat(customer), 401, "invalid_api_key")
    assert admin.ask("POST", f"/keys/{customer.key_id}/revoke").json == revoked
    assert [act.act for act in admin.acts(customer.account_id)] == ["key.revoke", "key.create", "account.create"]


def test_a_key_is_replaced_at_once(service: RunningService, admin: AdminClient) -> None:
    """The new one has the old one's name and works, the old one does not any more."""
    old = issued(admin, admin.new_account(), models=["test/one"])
    created = admin.create(f"/keys/{old.key_id}/replace", {})
    new = Customer(old.account_id, created["id"], created["secret"])
    assert (created["name"], created["models"], created["account_id"]) == ("laptop", ["test/one"], old.account_id)
    assert service.chat(new).status == 200
    assert_domain_error(service.chat(old), 401, "invalid_api_key")
    act = admin.acts(old.account_id)[0]
    assert (act.act, act.subject, act.detail["in_place_of"]) == ("key.replace", new.key_id, old.key_id)


def test_a_key_is_replaced_with_grace(service: RunningService, admin: AdminClient) -> None:
    """The old one works on until its time is over; then it cannot be replaced again."""
    old = issued(admin, admin.new_account())
    admin.create(f"/keys/{old.key_id}/replace", {"grace_s": 3_600})
    assert service.chat(old).status == 200
    assert admin.get(f"/keys/{old.key_id}")["expires_at"] is not None
    service.provisioning.revoke_key(old.key_id)
    assert_domain_error(admin.ask("POST", f"/keys/{old.key_id}/replace", {}), 409, "conflict")


def test_a_key_is_paused_and_resumed(service: RunningService, admin: AdminClient) -> None:
    """Refused in between; again it stays as it is, and is one act. What has ended is neither."""
    customer = issued(admin, admin.new_account())
    path = f"/keys/{customer.key_id}"
    paused = admin.ask("POST", f"{path}/pause").json
    assert (paused["state"], paused["paused_at"] is None) == ("paused", False)
    assert admin.ask("POST", f"{path}/pause").json == paused
    assert_domain_error(service.chat(customer), 401, "invalid_api_key")
    assert admin.ask("POST", f"{path}/resume").json["state"] == "active"
    assert service.chat(customer).status == 200
    acts = [act.act for act in admin.acts(customer.account_id)]
    assert acts == ["key.resume", "key.pause", "key.create", "account.create"]
    admin.ask("POST", f"{path}/revoke")
    for act in ("pause", "resume"):
        assert_domain_error(admin.ask("POST", f"{path}/{act}"), 409, "conflict")


def test_pages(admin: AdminClient) -> None:
    """Each key once, newest first; the limit is echoed; the place must be a key of this account."""
    account_id = admin.new_account()
    ids = {issued(admin, account_id).key_id for _ in range(3)}
    path = f"/accounts/{account_id}/keys?limit=2"
    first = admin.get(path)
    second = admin.get(f"{path}&before={first['data'][-1]['id']}")
    assert (first["more"], second["more"], first["limit"]) == (True, False, 2)
    assert len(first["data"]) == 2
    assert {key["id"] for key in first["data"] + second["data"]} == ids
    other = issued(admin, admin.new_account())
    assert_domain_error(admin.ask("GET", f"{path}&before={other.key_id}"), 404, "not_found")


def test_no_secret_is_kept(service: RunningService, admin: AdminClient) -> None:
    """Neither in the trail nor beside the reference."""
    customer = issued(admin, admin.new_account(), reference="no secret")
    kept = look(service, "SELECT detail, subject FROM acts") + look(service, "SELECT * FROM creations")
    assert customer.secret[16:-6] not in str(kept)
