"""Keys and accounts that are let in or not: rows 3 to 5 of the order of checks and the section Authentication.

What the header must look like is held by test_authorization_header.py.
"""

import pytest

from tarazu.domain.accounts import AccountStatus
from tests.support.backend import ScriptedBackend
from tests.support.endpoints import ENDPOINTS, ask, on_every_endpoint
from tests.support.envelopes import assert_domain_error, assert_own_error, rate_limit_headers
from tests.support.odd_keys import expired_key, key_with_another_secret, mistyped, unknown_key
from tests.support.rows import rows
from tests.support.service import CHAT, MODELS, RunningService
from tests.support.windows import NONE_TAKEN, places

pytestmark = pytest.mark.usefixtures("backend")


@rows("spec.codes.invalid_api_key", "spec.authentication.rule_4", "decisions.order_of_checks.3")
def test_a_key_with_any_one_character_mistyped(service: RunningService) -> None:
    """Wherever one character of a good key is changed or missing, the key is refused."""
    key = service.customer().secret
    for place in range(len(key)):
        for wrong in (mistyped(key, place), key[:place] + key[place + 1 :]):
            assert_domain_error(ask(service, "usage", f"Bearer {wrong}"), 401, "invalid_api_key")


@rows("spec.codes.invalid_api_key", "spec.authentication.rule_4", "decisions.order_of_checks.3")
def test_a_key_in_other_letters(service: RunningService) -> None:
    """The case of a key's letters matters."""
    key = service.customer().secret
    for wrong in (key.lower(), key.upper(), key.swapcase(), key.capitalize(), key[::-1]):
        assert_domain_error(ask(service, "usage", f"Bearer {wrong}"), 401, "invalid_api_key")


@rows("spec.codes.invalid_api_key", "spec.authentication.rule_4", "decisions.order_of_checks.4")
@on_every_endpoint
def test_a_key_that_is_unknown_revoked_or_expired(service: RunningService, endpoint: str) -> None:
    """Well-formed keys that are no good are all answered alike, so that nobody learns which ids exist."""
    customer = service.customer()
    revoked = service.another_key(customer)
    service.provisioning.revoke_key(revoked.key_id)
    bodies = set()
    for key in (unknown_key(), key_with_another_secret(customer), revoked.secret, expired_key(service, customer)):
        answer = ask(service, endpoint, f"Bearer {key}")
        assert assert_domain_error(answer, 401, "invalid_api_key") == {}
        assert answer.headers["www-authenticate"] == "Bearer"
        bodies.add(answer.body)
    assert len(bodies) == 1
    assert ask(service, endpoint, customer.bearer).status == 200


@rows("spec.authentication.rule_1", "decisions.order_of_checks.4")
@on_every_endpoint
def test_a_key_before_it_expires(service: RunningService, endpoint: str) -> None:
    """A key with an expiry to come is active."""
    customer = service.another_key(service.customer(), expires_in_s=60)
    assert ask(service, endpoint, customer.bearer).status == 200


@rows("spec.authentication.rule_4", "decisions.order_of_checks.4")
@on_every_endpoint
def test_a_revoked_key_is_refused_from_the_next_request_on(service: RunningService, endpoint: str) -> None:
    """A key that has just been used is refused as soon as it is revoked, and the account's other key works on."""
    customer = service.customer()
    other = service.another_key(customer)
    assert ask(service, endpoint, customer.bearer).status == 200
    service.provisioning.revoke_key(customer.key_id)
    assert_domain_error(ask(service, endpoint, customer.bearer), 401, "invalid_api_key")
    assert ask(service, endpoint, other.bearer).status == 200


@rows("spec.codes.account_unavailable", "spec.authentication.rule_5", "decisions.order_of_checks.5")
@on_every_endpoint
@pytest.mark.parametrize("status", [each for each in AccountStatus if each is not AccountStatus.ACTIVE])
def test_an_account_that_is_not_active(service: RunningService, endpoint: str, status: AccountStatus) -> None:
    """An unverified, inactive or blocked account is 403 account_unavailable everywhere, and active it works."""
    customer = service.customer(status=status)
    answer = ask(service, endpoint, customer.bearer)
    assert assert_domain_error(answer, 403, "account_unavailable") == {}
    assert rate_limit_headers(answer) == set()
    service.provisioning.set_account(customer.account_id, status=AccountStatus.ACTIVE)
    assert ask(service, endpoint, customer.bearer).status == 200


@rows(
    "decisions.order_of_checks.2",
    "decisions.order_of_checks.3",
    "decisions.order_of_checks.4",
    "decisions.order_of_checks.5",
)
def test_who_is_not_let_in_takes_nothing(service: RunningService, backend: ScriptedBackend) -> None:
    """Refused at the door, a call takes no place, no credits, and asks no backend."""
    customer = service.customer(status=AccountStatus.INACTIVE)
    wrong = key_with_another_secret(customer)
    for authorizations in ((), ("Basic x",), (f"Bearer {wrong}",), (customer.bearer,)):
        assert ask(service, "chat", *authorizations).status in {401, 403}
    assert places(service, customer) == NONE_TAKEN
    assert service.account(customer).used == 0
    assert backend.received == []


@rows("spec.authentication.rule_2")
def test_the_post_endpoint_also_needs_a_content_type(service: RunningService) -> None:
    """With a good key and without a correct Content-Type the POST endpoint refuses; with one it serves."""
    authorization = ("Authorization", service.customer().bearer)
    body = '{"prompt": "Hello"}'
    assert_own_error(service.request("POST", CHAT, body, [authorization]), 415)
    assert_own_error(service.request("POST", CHAT, body, [authorization, ("Content-Type", "text/plain")]), 415)
    assert service.request("POST", CHAT, body, [authorization, ("Content-Type", "application/json")]).status == 200


@rows("spec.authentication.rule_2")
@pytest.mark.parametrize("endpoint", ["models", "model", "usage"])
@pytest.mark.parametrize("content_type", [None, "text/plain", "nonsense"])
def test_the_get_endpoints_need_none(service: RunningService, endpoint: str, content_type: str | None) -> None:
    """A GET is served whatever its Content-Type says."""
    headers = {"Authorization": service.customer().bearer}
    if content_type is not None:
        headers["Content-Type"] = content_type
    assert service.request(*ENDPOINTS[endpoint], headers=headers).status == 200


@rows("spec.authentication.rule_6")
@pytest.mark.parametrize(
    ("plan", "key_models", "usable"),
    [
        ("basic", None, ["test/one", "test/two", "test/free", "odd/a:b.c-1/x"]),
        ("basic", ["test/free", "test/two"], ["test/two", "test/free"]),
        ("basic", ["test/one", "test/hasty"], ["test/one"]),
        (None, None, ["test/one", "test/two"]),
        (None, ["test/two", "test/free"], ["test/two"]),
    ],
)
def test_plan_and_key_determine_the_models(
    service: RunningService, plan: str | None, key_models: list[str] | None, usable: list[str]
) -> None:
    """What plan and key allow is what is listed, what is shown, and what can be called; nothing else is."""
    customer = service.customer(plan, balance=100, models=key_models)
    assert [model["id"] for model in service.get(MODELS, customer).json["data"]] == usable
    for model in service.configuration.catalogue.models:
        expected = 200 if model in usable else 404
        assert service.get(f"{MODELS}/{model}", customer).status == expected
        assert service.chat(customer, model=model).status == expected
