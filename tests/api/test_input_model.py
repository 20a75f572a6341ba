"""The body's member `model`: what it may be, and what is used when it is left out."""

from typing import Any

import pytest

from tests.support.backend import ScriptedBackend
from tests.support.effects import assert_took_only_a_place
from tests.support.envelopes import assert_domain_error
from tests.support.rows import rows
from tests.support.service import CATALOGUE, MODELS, RunningService

pytestmark = pytest.mark.usefixtures("backend")

DEFAULT_MODEL = "test/two"
"""Not the first of the catalogue, so that the two rules can be told apart."""


@pytest.fixture(scope="module")
def catalogue() -> str:
    """A default model that is not the first."""
    return CATALOGUE.replace('default_model = "test/one"', f'default_model = "{DEFAULT_MODEL}"')


@rows("spec.chat_request_body.model", "decisions.input.6")
def test_every_listed_id_can_be_sent(service: RunningService, backend: ScriptedBackend) -> None:
    """Each id of GET /models is accepted and used; the backend gets its own name for it."""
    customer = service.customer("basic", balance=10)
    ids = [model["id"] for model in service.get(MODELS, customer).json["data"]]
    names = {"test/one": "backend-name", "test/two": "two", "test/free": "free", "odd/a:b.c-1/x": "odd"}
    assert ids == list(names)
    for id_ in ids:
        assert service.chat(customer, model=id_).json["model"] == id_
        assert backend.received[-1].body["model"] == names[id_]


@rows("spec.chat_request_body.model", "decisions.input.6")
@pytest.mark.parametrize("members", [{}, {"model": None}], ids=repr)
@pytest.mark.parametrize(
    ("plan", "key_models", "used"),
    [
        ("large", None, DEFAULT_MODEL),
        ("basic", None, DEFAULT_MODEL),
        (None, None, DEFAULT_MODEL),
        ("large", ["*"], DEFAULT_MODEL),
        ("large", ["test/free", "test/two", "test/one"], DEFAULT_MODEL),
        ("basic", ["odd/a:b.c-1/x", "test/free"], "test/free"),
        ("basic", ["test/hasty", "test/free", "test/one"], "test/one"),
        (None, ["test/free", "test/one"], "test/one"),
    ],
)
def test_a_model_that_is_left_out(
    service: RunningService, members: dict[str, Any], plan: str | None, key_models: list[str] | None, used: str
) -> None:
    """Omitted or null it is the default model, where plan and key allow it, else the first usable of the catalogue."""
    answer = service.chat(service.customer(plan, balance=10, models=key_models), **members)
    assert (answer.status, answer.json["model"]) == (200, used)


@rows("decisions.input.6")
@pytest.mark.parametrize("members", [{}, {"model": None}], ids=repr)
def test_no_usable_model_at_all(service: RunningService, backend: ScriptedBackend, members: dict[str, Any]) -> None:
    """A key whose models the plan does not have gets 404 for whatever it asks."""
    customer = service.customer("basic", models=["test/hasty"])
    answer = service.chat(customer, **members)
    assert_domain_error(answer, 404, "model_not_found")
    assert_took_only_a_place(service, backend, customer, answer)


@rows("spec.codes.model_not_found", "decisions.input.6", "spec.endpoints.rule_1")
@pytest.mark.parametrize(
    "model",
    [
        "",
        " ",
        "no/such-model",
        "TEST/ONE",
        "Test One",
        " test/one",
        "test/one ",
        "test/one\n",
        "test/one\0",
        "test%2Fone",
        "test/",
        "one",
        "backend-name",
        "*",
        "default",
        "null",
        "ｔest/one",
        "x" * 100_000,
        5,
        0,
        True,
        False,
        1.5,
        [],
        ["test/one"],
        {},
        {"id": "test/one"},
    ],
    ids=lambda model: ascii(model)[:30],
)
def test_any_other_model(service: RunningService, backend: ScriptedBackend, model: Any) -> None:
    """What is not exactly a usable id, of whatever type, is 404 model_not_found."""
    customer = service.customer("large")
    answer = service.chat(customer, model=model)
    assert assert_domain_error(answer, 404, "model_not_found") == {}
    assert_took_only_a_place(service, backend, customer, answer)
