"""The contract of the admin API: valid, complete, and true to the tables of operations and of errors; and its page."""

import json
from collections import Counter
from functools import cache
from typing import Any

import jsonschema_rs
import pytest

from tarazu.api.admin.errors import AdminError
from tarazu.api.admin.notes import NOTES
from tarazu.api.admin.openapi import SCOPE_TEXTS, admin_document_json, admin_html
from tarazu.api.admin.route import Route
from tarazu.api.admin.routes import ROUTES
from tarazu.domain.admin_tokens import Scope
from tarazu.domain.errors import Error
from tests.support.contract import validate_document
from tests.support.html_page import Page

DOCUMENT: dict[str, Any] = json.loads(admin_document_json())
SCHEMAS: dict[str, dict[str, Any]] = DOCUMENT["components"]["schemas"]
ALWAYS = {"400", "401", "503"}
WITH_A_BODY = {"408", "413", "415"}

each_route = pytest.mark.parametrize("route", [pytest.param(route, id=route.operation_id) for route in ROUTES])


@cache
def page() -> Page:
    """Read the page for people."""
    return Page(admin_html().decode())


def operation(route: Route) -> dict[str, Any]:
    """Find a route's operation."""
    found: dict[str, Any] = DOCUMENT["paths"][route.path][route.method.lower()]
    return found


def validator(schema: dict[str, Any]) -> jsonschema_rs.Draft202012Validator:
    """Make a validator for a schema of the contract."""
    whole = {**schema, "components": DOCUMENT["components"]}
    return jsonschema_rs.Draft202012Validator(whole, validate_formats=True)


def test_it_is_an_openapi_document() -> None:
    """The document is valid by the JSON Schema of OpenAPI 3.1."""
    validate_document(DOCUMENT)


def test_it_has_every_operation_and_no_other() -> None:
    """Those of the table, and its own; each under a name of its own."""
    found = Counter(each["operationId"] for item in DOCUMENT["paths"].values() for each in item.values())
    assert found == Counter([*(route.operation_id for route in ROUTES), "getContract"])


@each_route
def test_statuses(route: Route) -> None:
    """Each operation documents the statuses that it can answer with, and no others."""
    statuses = set(operation(route)["responses"])
    expected = ALWAYS | {str(status.value) for status in route.statuses} | {str(e.value.status) for e in route.errors}
    expected |= set() if route.scope is Scope.READ else {"403"}
    expected |= set() if route.body is None else WITH_A_BODY
    assert statuses == expected


@each_route
def test_examples(route: Route) -> None:
    """Every example of a body, a parameter and an answer is valid."""
    of = operation(route)
    answers = [media for response in of["responses"].values() for media in response["content"].values()]
    bodies = list(of.get("requestBody", {"content": {}})["content"].values())
    for owner in (*answers, *bodies, *of.get("parameters", ())):
        assert owner["examples"]
        for example in owner["examples"].values():
            validator(owner["schema"]).validate(example["value"])


@each_route
def test_headers(route: Route) -> None:
    """Every answer carries X-Request-Id, and each status the headers that go with it."""
    for status, response in operation(route)["responses"].items():
        names = {"401": {"WWW-Authenticate"}, "503": {"Retry-After"}}.get(status, set())
        assert set(response["headers"]) == {"X-Request-Id"} | names


@each_route
def test_it_says_which_scope_is_needed(route: Route) -> None:
    """In words, on each operation."""
    assert f"Needs the scope `{route.scope}`." in operation(route)["description"]


def test_every_scope_is_explained() -> None:
    """In the introduction."""
    assert set(SCOPE_TEXTS) == set(Scope)
    for scope, meaning in SCOPE_TEXTS.items():
        assert f"| `{scope}` | {meaning} |" in DOCUMENT["info"]["description"]


def test_every_member_says_what_it_means() -> None:
    """No member of any object is without a description, no object, and no parameter."""
    for name, schema in SCHEMAS.items():
        assert schema["description"], name
        for path, found in schema["properties"].items():
            assert found.get("description"), f"{name}.{path}"
    for route in ROUTES:
        assert all(parameter["description"] for parameter in operation(route).get("parameters", ()))


def test_bodies_take_what_is_listed_and_answers_may_grow() -> None:
    """A body has no other members; every member of an answer is promised, and more may come."""
    bodies = {type(route.body).__name__ for route in ROUTES if route.body is not None}
    for name, schema in SCHEMAS.items():
        if name in bodies:
            assert schema["additionalProperties"] is False
        else:
            assert schema["required"] == list(schema["properties"])
            assert "additionalProperties" not in schema


@pytest.mark.parametrize("error", AdminError)
def test_every_error_is_explained(error: AdminError) -> None:
    """With its cause and its remedy, in the table of the introduction."""
    note = NOTES[error]
    row = f"| {error.value.status} | `{error.value.code}` | {note.cause} | {note.remedy} |"
    assert row in DOCUMENT["info"]["description"]


def test_a_code_means_the_same_in_both_apis() -> None:
    """One that both have stands under the same status."""
    public = {error.value.code: error.value.status for error in Error}
    for error in AdminError:
        assert public.get(error.value.code, error.value.status) == error.value.status


def test_the_page_is_sound() -> None:
    """What is opened is closed, ids are unique, every link resolves, and nothing is loaded."""
    ids = Counter(page().values("id"))
    assert page().open == []
    assert [name for name, times in ids.items() if times > 1] == []
    for target in page().values("href"):
        assert target in ("/api/admin/v1/openapi.json", "data:,", "/admin/") or target.removeprefix("#") in ids, target
    assert page().values("src") == []
    assert [tag for tag, _ in page().elements if tag == "script"] == []


@each_route
def test_the_page_has_every_operation(route: Route) -> None:
    """With its route, its words and its sample."""
    assert f"{route.method} {route.path}" in page().text
    assert route.operation_id in page().values("id")
    assert " ".join(operation(route)["x-codeSamples"][0]["source"].split()) in page().text
