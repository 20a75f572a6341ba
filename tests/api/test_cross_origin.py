"""Pages of other origins: which may call the API from a browser, and what they are told."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tarazu.api.contract.headers import HEADERS
from tests.support.backend import ScriptedBackend
from tests.support.rows import rows
from tests.support.service import CHAT, MODELS, Answer, RunningService, checked

ORIGIN = "https://app.example.com"
OTHERS = ["https://evil.example", "http://app.example.com", f"{ORIGIN}.evil.example", f"{ORIGIN}:8443", "null", "*", ""]


@pytest.fixture(scope="module")
def service(module_backend: ScriptedBackend, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """Run the service for pages of two origins."""
    folder: Path = tmp_path_factory.mktemp("service")
    origins = f'cors_origins = ["{ORIGIN}", "http://localhost:5173"]'
    with checked(RunningService(folder, module_backend.url, server=origins)) as service:
        yield service


def preflight(service: RunningService, path: str, origin: str, *, wanted: str = "authorization") -> Answer:
    """Ask, as a browser does, whether a page may POST with these headers."""
    return service.request(
        "OPTIONS",
        path,
        headers={
            "Origin": origin,
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": wanted,
        },
    )


def permissions(answer: Answer) -> list[str]:
    """List the headers by which a browser lets a page go on."""
    return [name for name in answer.headers if name.lower().startswith("access-control-")]


@rows("decisions.beside_the_specification.2")
def test_a_page_that_is_named_may_call(service: RunningService) -> None:
    """Its preflight is answered, with its headers and those of official clients; never with cookies."""
    wanted = "authorization, content-type, idempotency-key, x-stainless-lang"
    told = preflight(service, CHAT, ORIGIN, wanted=wanted)
    assert told.status == 200
    assert told.headers["access-control-allow-origin"] == ORIGIN
    assert told.headers["access-control-allow-headers"] == wanted
    assert "POST" in told.headers["access-control-allow-methods"]
    assert "Origin" in told.headers["vary"]
    assert told.headers["x-request-id"]
    assert "access-control-allow-credentials" not in told.headers


@rows("decisions.beside_the_specification.2")
def test_each_answer_can_be_read_by_the_page(service: RunningService) -> None:
    """Replies and errors alike, those that are given before the key or the body is read too, with all their headers."""
    customer = service.customer()
    origin = {"Origin": ORIGIN}
    given = {
        200: service.post(customer, {"prompt": "Hello"}, **origin),
        401: service.request("GET", MODELS, headers=origin),
        404: service.request("GET", f"{MODELS}/no/such", headers={"Authorization": customer.bearer, **origin}),
        405: service.request("DELETE", MODELS, headers=origin),
        413: service.post(customer, {"prompt": "x" * 24_001}, **origin),
        415: service.request(
            "POST", CHAT, "{}", {"Authorization": customer.bearer, "Content-Type": "text/plain", **origin}
        ),
        431: service.request("GET", MODELS, headers={"X-Long": "x" * 9_000, **origin}),
    }
    assert {status: answer.status for status, answer in given.items()} == {status: status for status in given}
    for answer in given.values():
        assert answer.headers["access-control-allow-origin"] == ORIGIN
        assert answer.headers["access-control-expose-headers"] == ", ".join(HEADERS)
        assert "Origin" in answer.headers["vary"]
        assert "access-control-allow-credentials" not in answer.headers


@rows("decisions.beside_the_specification.2")
@pytest.mark.parametrize("origin", OTHERS)
def test_any_other_origin_is_told_nothing(service: RunningService, origin: str) -> None:
    """Its preflight is 405 like any OPTIONS, and no answer holds a permission; what depends on the origin says so."""
    refused = preflight(service, CHAT, origin)
    assert (refused.status, refused.code, permissions(refused)) == (405, "method_not_allowed", [])
    answer = service.request("GET", MODELS, headers={"Origin": origin})
    assert (answer.status, permissions(answer), answer.headers["vary"]) == (401, [], "Origin")


@rows("decisions.beside_the_specification.2")
@pytest.mark.parametrize(
    "path", ["/docs", "/health", "/panel/sign-in", "/admin/sign-in", "/api/admin/v1/accounts", "/"]
)
def test_nothing_but_the_api_is_open(service: RunningService, path: str) -> None:
    """Pages, health and the admin API give no origin a permission."""
    assert permissions(preflight(service, path, ORIGIN)) == []
    assert permissions(service.request("GET", path, headers={"Origin": ORIGIN})) == []


@rows("decisions.beside_the_specification.2")
def test_by_default_no_page_may_call(module_backend: ScriptedBackend, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Where the configuration names none, no answer holds a permission."""
    with checked(RunningService(tmp_path_factory.mktemp("closed"), module_backend.url)) as service:
        assert permissions(preflight(service, CHAT, ORIGIN)) == []
        answer = service.post(service.customer(), {"prompt": "Hello"}, Origin=ORIGIN)
        assert (answer.status, permissions(answer)) == (200, [])
        assert "vary" not in answer.headers
