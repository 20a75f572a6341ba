"""The Authorization header itself: rows 2 and 3 of the order of checks, on every endpoint."""

import pytest

from tests.support.endpoints import ask, on_every_endpoint
from tests.support.envelopes import assert_domain_error, rate_limit_headers
from tests.support.rows import rows
from tests.support.service import USAGE, RunningService

pytestmark = pytest.mark.usefixtures("backend")


@rows("spec.authentication.rule_1", "decisions.order_of_checks.3")
@on_every_endpoint
@pytest.mark.parametrize(
    "authorization",
    [
        "Bearer {key}",
        "bearer {key}",
        "BEARER {key}",
        "bEaReR {key}",
        "Bearer  {key}",
        "Bearer       {key}",
        "  Bearer {key}",
        "\tBearer {key}\t ",
    ],
)
def test_a_good_key(service: RunningService, endpoint: str, authorization: str) -> None:
    """An active key is let in: the scheme in any case, one or more spaces, HTTP's own white space around it."""
    answer = ask(service, endpoint, authorization.format(key=service.customer().secret))
    assert answer.status == 200, answer
    assert "www-authenticate" not in answer.headers


@rows("spec.authentication.rule_1")
@on_every_endpoint
@pytest.mark.parametrize("name", ["authorization", "AUTHORIZATION", "aUTHORIZATION"])
def test_the_case_of_the_header_name_does_not_matter(service: RunningService, endpoint: str, name: str) -> None:
    """Header names have no case."""
    assert ask(service, endpoint, service.customer().bearer, name=name).status == 200


@rows(
    "spec.codes.missing_api_key",
    "spec.authentication.rule_1",
    "spec.authentication.rule_3",
    "decisions.order_of_checks.2",
)
@on_every_endpoint
@pytest.mark.parametrize("authorizations", [(), ("",), (" ",), ("\t  ",)], ids=["absent", "empty", "space", "tabs"])
def test_no_authorization_header(service: RunningService, endpoint: str, authorizations: tuple[str, ...]) -> None:
    """Without the header, or with a blank one, every endpoint answers 401 missing_api_key."""
    answer = ask(service, endpoint, *authorizations)
    assert assert_domain_error(answer, 401, "missing_api_key") == {}
    assert answer.headers["www-authenticate"] == "Bearer"
    assert rate_limit_headers(answer) == set()


@rows("spec.authentication.rule_1", "spec.authentication.rule_3", "decisions.order_of_checks.2")
@on_every_endpoint
@pytest.mark.parametrize("name", ["X-API-Key", "API-Key", "Proxy-Authorization", "X-Authorization"])
def test_a_key_in_another_header(service: RunningService, endpoint: str, name: str) -> None:
    """Only the Authorization header counts."""
    assert_domain_error(ask(service, endpoint, service.customer().bearer, name=name), 401, "missing_api_key")


@rows("spec.authentication.rule_1", "spec.authentication.rule_3", "decisions.order_of_checks.2")
@pytest.mark.parametrize("parameter", ["api_key", "key", "access_token"])
def test_a_key_in_the_address(service: RunningService, parameter: str) -> None:
    """A key in the query, where logs of others would keep it, does not count."""
    assert_domain_error(service.get(f"{USAGE}?{parameter}={service.customer().secret}"), 401, "missing_api_key")


@rows("spec.codes.invalid_api_key", "spec.authentication.rule_4", "decisions.order_of_checks.3")
@on_every_endpoint
@pytest.mark.parametrize(
    "authorization",
    [
        "Bearer",
        "Bearer ",
        "{key}",
        "Bearer{key}",
        "Bearer\t{key}",
        "Bearer \t{key}",
        "Bearer\t {key}",
        "Bearer\xa0{key}",
        "Bearer:{key}",
        "Bearer: {key}",
        "Bearer={key}",
        "Basic {key}",
        "Basic dXNlcjpwYXNz",
        "Token {key}",
        "Bear {key}",
        "Bearers {key}",
        "X Bearer {key}",
        "Bearer Bearer {key}",
        "Bearer {key} x",
        "Bearer {key} {key}",
        "Bearer {key}, Bearer {key}",
        "Bearer {key},",
        "Bearer {key};",
        'Bearer "{key}"',
        "Bearer <{key}>",
        "Bearer x{key}",
        "Bearer {key}0",
        "Bearer {key}\xe9",
        "Bearer \xe9\xff",
        "Bearer trz_",
        "Bearer sk-0123456789abcdefghijklmnopqrstuvwxyz0123456789",
        "Bearer %20{key}",
        "Bearer null",
    ],
)
def test_a_malformed_header(service: RunningService, endpoint: str, authorization: str) -> None:
    """Another scheme, no space, other white space, anything beside the key: 401 invalid_api_key."""
    answer = ask(service, endpoint, authorization.format(key=service.customer().secret))
    assert assert_domain_error(answer, 401, "invalid_api_key") == {}
    assert answer.headers["www-authenticate"] == "Bearer"
    assert rate_limit_headers(answer) == set()


@rows("spec.codes.invalid_api_key", "spec.authentication.rule_4", "decisions.order_of_checks.3")
@on_every_endpoint
@pytest.mark.parametrize(
    "authorizations",
    [
        ("Bearer {key}", "Bearer {key}"),
        ("Bearer {key}", "Basic dXNlcjpwYXNz"),
        ("Basic dXNlcjpwYXNz", "Bearer {key}"),
        ("Bearer {key}", "Bearer {other}"),
        ("Bearer {key}", ""),
        ("", "Bearer {key}"),
    ],
)
def test_a_second_authorization_header(service: RunningService, endpoint: str, authorizations: tuple[str, ...]) -> None:
    """Two Authorization headers are malformed, even where one or both are good: it is not guessed who is meant."""
    customer = service.customer()
    key, other = customer.secret, service.another_key(customer).secret
    answer = ask(service, endpoint, *(each.format(key=key, other=other) for each in authorizations))
    assert_domain_error(answer, 401, "invalid_api_key")
