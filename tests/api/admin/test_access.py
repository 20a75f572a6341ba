"""Every operation against every kind of caller, made from the table of operations."""

import os
from collections.abc import Iterator

import msgspec
import pytest

from tarazu.api.admin.route import Route
from tarazu.api.admin.routes import ROUTES
from tarazu.domain.admin_tokens import Scope
from tarazu.domain.keys import ADMIN_TOKEN, ENTROPY_BYTES, mint
from tarazu.service.configuration.addresses import ADMIN_API_PATH
from tarazu.service.provisioning import Provisioning
from tests.support.admin import NOBODY, AdminClient, admin_client, intake_as_before, path_of
from tests.support.envelopes import assert_domain_error
from tests.support.odd_keys import mistyped
from tests.support.service import Answer, RunningService

HOUR_MS = 3_600_000

each_route = pytest.mark.parametrize("route", [pytest.param(route, id=route.operation_id) for route in ROUTES])


@pytest.fixture(scope="module", autouse=True)
def _intake(service: RunningService) -> Iterator[None]:
    """One of the operations stops intake; the tests may end with it stopped."""
    with intake_as_before(service):
        yield


@pytest.fixture(scope="module")
def ended(service: RunningService) -> dict[str, str]:
    """Well-formed tokens that are no good, by what they are."""
    now = service.provisioning
    revoked = now.create_admin_token(name="revoked", scopes=list(Scope))
    now.revoke_admin_token(revoked.token.id)
    an_hour_ago = Provisioning(
        service.engine, service.configuration.catalogue, lambda: service.clock() - HOUR_MS, by="tests"
    )
    expired = an_hour_ago.create_admin_token(name="expired", scopes=list(Scope), expires_in_s=1)
    good = now.create_admin_token(name="good", scopes=list(Scope)).secret
    return {
        "unknown": mint(os.urandom(ENTROPY_BYTES), ADMIN_TOKEN).text,
        "revoked": revoked.secret,
        "expired": expired.secret,
        "mistyped": mistyped(good),
        "of another case": good.swapcase(),
        "an API key": service.customer().secret,
        "no token": "admin",
    }


@pytest.fixture(scope="module")
def by_scope(service: RunningService) -> dict[Scope, AdminClient]:
    """A program for each scope, which has that one alone."""
    return {scope: admin_client(service, scope) for scope in Scope}


def ask(client: AdminClient, route: Route) -> Answer:
    """Do it as in the example, on something that is not there."""
    body = None if route.body is None else msgspec.json.encode(route.body)
    return client.ask(route.method, path_of(route, NOBODY), body)


@each_route
def test_without_a_token(service: RunningService, route: Route) -> None:
    """No operation is open to nobody."""
    answer = ask(AdminClient(service, "nobody", None), route)
    assert assert_domain_error(answer, 401, "missing_token") == {}


@each_route
def test_a_token_that_is_no_good(service: RunningService, ended: dict[str, str], route: Route) -> None:
    """All are answered alike, so that nobody learns which tokens exist."""
    bodies = set()
    for secret in ended.values():
        answer = ask(AdminClient(service, "nobody", secret), route)
        assert assert_domain_error(answer, 401, "invalid_token") == {}
        bodies.add(answer.body)
    assert len(bodies) == 1


@each_route
@pytest.mark.parametrize("scope", Scope)
def test_each_scope(by_scope: dict[Scope, AdminClient], route: Route, scope: Scope) -> None:
    """Whoever has the scope is let in, to be told that the thing is not there; others are told which scope it needs."""
    answer = ask(by_scope[scope], route)
    if route.scope not in (scope, Scope.READ):
        assert assert_domain_error(answer, 403, "insufficient_scope") == {"scope": route.scope}
    elif "{" in route.path:
        assert_domain_error(answer, 404, "not_found")
    else:
        assert answer.status in {200, 201, 422}  # the example's plan is not for sale here


def test_the_header_is_read_as_that_of_the_public_api(service: RunningService, admin: AdminClient) -> None:
    """The scheme in any case, one or more spaces; a second header, another scheme, no space: no token."""
    for value, status in {
        f"bearer {admin.secret}": 200,
        f"Bearer   {admin.secret}": 200,
        f"Basic {admin.secret}": 401,
        f"Bearer{admin.secret}": 401,
        f"Bearer {admin.secret} x": 401,
    }.items():
        answer = service.request("GET", f"{ADMIN_API_PATH}/intake", headers={"Authorization": value})
        assert answer.status == status, value
    twice = [("Authorization", f"Bearer {admin.secret}")] * 2
    assert_domain_error(service.request("GET", f"{ADMIN_API_PATH}/intake", headers=twice), 401, "invalid_token")
    blank = service.request("GET", f"{ADMIN_API_PATH}/intake", headers={"Authorization": " "})
    assert_domain_error(blank, 401, "missing_token")


def test_a_revoked_token_is_refused_from_the_next_request_on(service: RunningService) -> None:
    """Nothing about tokens is kept in memory."""
    issued = service.provisioning.create_admin_token(name="short", scopes=["read"])
    client = AdminClient(service, "short", issued.secret)
    assert client.ask("GET", "/intake").status == 200
    service.provisioning.revoke_admin_token(issued.token.id)
    assert_domain_error(client.ask("GET", "/intake"), 401, "invalid_token")


def test_who_may_not_is_told_before_what_is_sent_is_looked_at(service: RunningService) -> None:
    """A body that is wrong, or an id that is not there, is no way to learn anything without the scope."""
    reader = admin_client(service, Scope.READ)
    for path in ("/accounts/acc_1/topups", f"/accounts/{service.customer().account_id}/topups"):
        assert_domain_error(reader.ask("POST", path, b"{"), 403, "insufficient_scope")


def test_an_admin_token_is_no_api_key(service: RunningService, admin: AdminClient) -> None:
    """The public API does not know it."""
    answer = service.request("GET", "/api/v1/usage", headers={"Authorization": f"Bearer {admin.secret}"})
    assert_domain_error(answer, 401, "invalid_api_key")


def test_no_token_stands_in_the_log_or_an_answer(service: RunningService, admin: AdminClient) -> None:
    """Neither of a good nor of a bad one."""
    assert admin.secret is not None
    wrong = mistyped(admin.secret)
    answers = [admin.ask("GET", "/accounts"), AdminClient(service, "nobody", wrong).ask("GET", "/accounts")]
    written = service.log.read_text() + "".join(f"{answer.headers} {answer.body!r}" for answer in answers)
    assert admin.secret[16:-6] not in written
