"""What is sent: unknown members, wrong types, values out of bounds, ids of any form, bodies that are none."""

import json
from typing import Any

import msgspec
import pytest

from tarazu.api.admin.route import Route
from tarazu.api.admin.routes import ROUTES
from tarazu.domain.credits import BALANCE_MAX
from tarazu.service.checks import EXPIRY_S_MAX, LIMIT_PER_MINUTE_MAX
from tests.support.admin import NOBODY, AdminClient, path_of
from tests.support.envelopes import assert_domain_error, assert_own_error
from tests.support.service import Answer

WITH_A_BODY = [pytest.param(route, id=route.operation_id) for route in ROUTES if route.body is not None]
WITH_IDS = [pytest.param(route, id=route.operation_id) for route in ROUTES if "{" in route.path]
WITHOUT_A_BODY = [pytest.param(route, id=route.operation_id) for route in ROUTES if route.body is None]
OF_ANOTHER_TYPE: dict[str, Any] = {"string": 5, "integer": "5", "array": "x", "boolean": 1, "null": {}}
ODD_IDS = (
    "acc_",
    "acc_0000",
    "key_0000",
    "ACC_00000000000000",
    "acc_%00",
    "acc_%F0%9F%92%A9",
    "acc_%FF%FE",
    "acc_x%0A",
    "acc_1;drop",
    "acc_%D8%A2",
    "..",
    "%2E%2E",
    "acc_" + "x" * 3_000,
    "' OR 1=1 --".replace(" ", "%20"),
    "%ED%A0%80",
)

with_a_body = pytest.mark.parametrize("route", WITH_A_BODY)


def example(route: Route) -> dict[str, Any]:
    """Write the example's body."""
    body: dict[str, Any] = json.loads(msgspec.json.encode(route.body))
    return body


def types_of(route: Route) -> dict[str, set[str]]:
    """Tell the types that each member of a route's body may have."""
    _, schemas = msgspec.json.schema_components([type(route.body)])
    members = schemas[type(route.body).__name__]["properties"]
    return {
        name: {each.get("type", "string") for each in member.get("anyOf", [member])} for name, member in members.items()
    }


@with_a_body
def test_a_member_that_is_unknown(admin: AdminClient, route: Route) -> None:
    """It is refused by name, whatever it holds, and nothing is done."""
    for name in ("unknown", "Name", "credit", "__proto__", "\u0000", "نام", "x" * 500):
        answer = admin.ask(route.method, path_of(route, NOBODY), {**example(route), name: None})
        assert assert_domain_error(answer, 400, "invalid_request") == {"member": name[:100]}
        assert "unknown" not in answer.json["error"]["message"] or name == "unknown"


@with_a_body
def test_a_member_of_another_type(admin: AdminClient, route: Route) -> None:
    """It is refused by name; what is a number is not taken out of a text."""
    for member, types in types_of(route).items():
        for type_, value in OF_ANOTHER_TYPE.items():
            wrong = value if type_ in types else None if "null" not in types else {}
            answer = admin.ask(route.method, path_of(route, NOBODY), {**example(route), member: wrong})
            assert assert_domain_error(answer, 400, "invalid_request") == {"member": member}, (member, wrong)
            assert f"{member} must be " in answer.json["error"]["message"]
            assert "`" not in answer.json["error"]["message"]  # a library's own words have it


@with_a_body
def test_a_member_that_is_missing(admin: AdminClient, route: Route) -> None:
    """What must be there is asked for by name; what may be left out is not."""
    _, schemas = msgspec.json.schema_components([type(route.body)])
    for member in schemas[type(route.body).__name__]["required"]:
        body = example(route)
        del body[member]
        answer = admin.ask(route.method, path_of(route, NOBODY), body)
        assert assert_domain_error(answer, 400, "invalid_request") == {"member": member}


@with_a_body
@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"null", b"[]", b'"x"', b"5", b"\xff\xfe", b'{"name": "\\ud800"}', b'{"name": NaN}', b"[" * 100_000],
    ids=["empty", "half", "null", "array", "text", "number", "no UTF-8", "surrogate", "NaN", "deep"],
)
def test_a_body_that_is_no_object(admin: AdminClient, route: Route, body: bytes) -> None:
    """400 with a code, never a fault of ours."""
    answer = admin.ask(route.method, path_of(route, NOBODY), body)
    details = assert_domain_error(answer, 400, "invalid_request")
    assert details["member"] in {None, "name", *types_of(route)}


def test_a_number_that_nothing_holds(admin: AdminClient) -> None:
    """It is said of the number: the body is an object."""
    answer = admin.ask("POST", "/accounts", b'{"name": 1e999}')
    assert_domain_error(answer, 400, "invalid_request")
    assert answer.json["error"]["message"] == "The body has a number that is out of bounds."


@with_a_body
def test_a_body_of_another_kind(admin: AdminClient, route: Route) -> None:
    """Only JSON in UTF-8, not compressed, at most 1 MiB."""
    path = path_of(route, NOBODY)
    for headers in (
        {"Content_Type": "text/plain"},
        {"Content_Type": "application/json; charset=latin-1"},
        {"Content_Encoding": "gzip"},
    ):
        assert_own_error(admin.ask(route.method, path, b"{}", **headers), 415)
    assert_domain_error(admin.ask(route.method, path, b" " * (1024 * 1024 + 1)), 413, "input_too_large")


@pytest.mark.parametrize(
    ("body", "member"),
    [
        ({"name": ""}, "name"),
        ({"name": "  "}, "name"),
        ({"name": "x" * 201}, "name"),
        ({"name": "x" * 200 + " "}, "name"),
        ({"name": "a\u0000b"}, "name"),
        ({"name": "a\u202eb"}, "name"),
        ({"name": "x", "email": "x"}, "email"),
        ({"name": "x", "email": "a\u0000@b"}, "email"),
        ({"name": "x", "email": "a b@c"}, "email"),
        ({"name": "x", "email": "a@" + "b" * 200}, "email"),
        ({"name": "x", "email": "\t" * 198 + "a@b"}, "email"),
        ({"name": "x", "plan": "nothing"}, "plan"),
        ({"name": "x", "plan": ""}, "plan"),
        ({"name": "x", "plan": "\u0000"}, "plan"),
        ({"name": "x", "status": "deleted"}, "status"),
        ({"name": "x", "reference": ""}, "reference"),
        ({"name": "x", "reference": "x" * 201}, "reference"),
        ({"name": "x", "reference": "\x1f" + "x" * 200}, "reference"),
        ({"name": "x", "reference": "a\nb"}, "reference"),
    ],
)
def test_an_account_that_cannot_be(admin: AdminClient, body: dict[str, object], member: str) -> None:
    """422 with the member that is wrong."""
    assert assert_domain_error(admin.ask("POST", "/accounts", body), 422, "invalid_value") == {"member": member}


@pytest.mark.parametrize(
    ("values", "member"),
    [
        ({"name": "\t"}, "name"),
        ({"models": []}, "models"),
        ({"models": ["nothing"]}, "models"),
        ({"limit_per_minute": 0}, "limit_per_minute"),
        ({"limit_per_minute": -1}, "limit_per_minute"),
        ({"limit_per_minute": LIMIT_PER_MINUTE_MAX + 1}, "limit_per_minute"),
        ({"limit_per_minute": 10**30}, "limit_per_minute"),
        ({"expires_in_s": 0}, "expires_in_s"),
        ({"expires_in_s": EXPIRY_S_MAX + 1}, "expires_in_s"),
        ({"expires_in_s": 10**30}, "expires_in_s"),
    ],
)
def test_a_key_that_cannot_be(admin: AdminClient, values: dict[str, object], member: str) -> None:
    """422 with the member that is wrong; the most that can be is issued."""
    path = f"/accounts/{admin.new_account()}/keys"
    answer = admin.ask("POST", path, {"name": "x", **values})
    assert assert_domain_error(answer, 422, "invalid_value") == {"member": member}
    admin.create(path, {"name": "x", "limit_per_minute": LIMIT_PER_MINUTE_MAX, "expires_in_s": EXPIRY_S_MAX})


@pytest.mark.parametrize("grace_s", [-1, EXPIRY_S_MAX + 1, 10**30])
def test_a_time_of_grace_that_cannot_be(admin: AdminClient, grace_s: int) -> None:
    """422, and the key is not replaced."""
    key = admin.create(f"/accounts/{admin.new_account()}/keys", {"name": "x"})
    answer = admin.ask("POST", f"/keys/{key['id']}/replace", {"grace_s": grace_s})
    assert assert_domain_error(answer, 422, "invalid_value") == {"member": "grace_s"}
    assert admin.get(f"/keys/{key['id']}")["state"] == "active"


@pytest.mark.parametrize(
    ("path", "body", "member"),
    [
        ("topups", {"credits": 0, "reference": "x"}, "credits"),
        ("topups", {"credits": -5, "reference": "x"}, "credits"),
        ("topups", {"credits": BALANCE_MAX + 1, "reference": "x"}, "credits"),
        ("topups", {"credits": 10**30, "reference": "x"}, "credits"),
        ("topups", {"credits": 5, "reference": " "}, "reference"),
        ("topups", {"credits": 5, "reference": "x", "note": "a\u0000"}, "note"),
        ("adjustments", {"credits": 0, "reason": "x"}, "credits"),
        ("adjustments", {"credits": -BALANCE_MAX - 1, "reason": "x"}, "credits"),
        ("adjustments", {"credits": 5, "reason": ""}, "reason"),
        ("adjustments", {"credits": 5, "reason": "x" * 1_001}, "reason"),
    ],
)
def test_credits_that_cannot_be(admin: AdminClient, path: str, body: dict[str, object], member: str) -> None:
    """422 with the member that is wrong, and the balance stays."""
    account_id = admin.new_account()
    answer = admin.ask("POST", f"/accounts/{account_id}/{path}", body)
    assert assert_domain_error(answer, 422, "invalid_value") == {"member": member}
    assert admin.get(f"/accounts/{account_id}")["balance"] == 0


def test_a_fraction_of_a_credit(admin: AdminClient) -> None:
    """Credits are whole: 400, never rounded; a fraction of zero is none."""
    account_id = admin.new_account()
    path = f"/accounts/{account_id}/topups"

    def topup(number: str) -> Answer:
        return admin.ask("POST", path, f'{{"reference": "{account_id} {number}", "credits": {number}}}'.encode())

    for number in ("1.5", "1e-3", "true", "[5]", "1e400"):
        assert topup(number).status in {400, 422}, number
    for number, balance in {"5.0": 5, "1e3": 1_005}.items():
        assert topup(number).json["balance"] == balance


@pytest.mark.parametrize("retry_after_s", [0, -1, 86_401, 10**30])
def test_a_retry_time_that_cannot_be(admin: AdminClient, retry_after_s: int) -> None:
    """422, and intake runs on."""
    answer = admin.ask("PUT", "/intake", {"stopped": True, "retry_after_s": retry_after_s})
    assert assert_domain_error(answer, 422, "invalid_value") == {"member": "retry_after_s"}
    assert admin.get("/intake")["stopped"] is False


@pytest.mark.parametrize("route", WITH_IDS)
def test_an_id_that_is_not_there(admin: AdminClient, route: Route) -> None:
    """404 whatever its form, never a fault of ours."""
    body = None if route.body is None else example(route)
    for odd in (*NOBODY.values(), *ODD_IDS):
        answer = admin.ask(route.method, path_of(route, dict.fromkeys(NOBODY, odd)), body)
        assert answer.status == 404, odd


@pytest.mark.parametrize("path", ["/accounts?before", "/trail?account_id", "/trail?before"])
def test_a_place_that_is_not_there(admin: AdminClient, path: str) -> None:
    """404 whatever its form."""
    for odd in ODD_IDS:
        answer = admin.ask("GET", f"{path}={odd}")
        assert answer.status == 404, odd


@pytest.mark.parametrize("route", WITHOUT_A_BODY)
def test_a_parameter_that_is_unknown(admin: AdminClient, route: Route) -> None:
    """It is refused by name."""
    answer = admin.ask(route.method, f"{path_of(route, NOBODY)}?limits=5")
    assert assert_domain_error(answer, 400, "invalid_request") == {"member": "limits"}


@pytest.mark.parametrize(
    ("query", "status", "member"),
    [
        ("limit=x", 400, "limit"),
        ("limit=", 400, "limit"),
        ("limit=1.5", 400, "limit"),
        ("limit=0", 422, "limit"),
        ("limit=1001", 422, "limit"),
        ("limit=-1", 422, "limit"),
        ("limit=" + "9" * 500, 422, "limit"),
        ("limit=1&limit=2", 400, None),
        ("search=", 422, "search"),
        ("search=%00", 422, "search"),
        ("search=" + "x" * 201, 422, "search"),
    ],
)
def test_a_parameter_that_cannot_be(admin: AdminClient, query: str, status: int, member: str | None) -> None:
    """400 for what is no number, 422 for one out of bounds, with the parameter's name."""
    code = "invalid_request" if status == 400 else "invalid_value"
    assert assert_domain_error(admin.ask("GET", f"/accounts?{query}"), status, code) == {"member": member}


def test_the_most_that_a_page_may_have(admin: AdminClient) -> None:
    """Is echoed."""
    for path in ("/accounts", "/trail", f"/accounts/{admin.new_account()}/keys"):
        assert admin.get(f"{path}?limit=1000")["limit"] == 1_000
