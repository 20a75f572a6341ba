"""GET /models and GET /models/{model_id} over HTTP: every member, and exactly what the plan and the key allow."""

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest

from tests.support.answers import assert_refused
from tests.support.backend import ScriptedBackend
from tests.support.envelopes import assert_own_error, rate_limit_headers
from tests.support.rows import rows
from tests.support.service import CHAT, MODELS, USAGE, Answer, Customer, RunningService

ODD_ID = "odd/a:b.c-1/x"
IDS = ("test/one", "test/two", "test/free", "test/dear", "test/hasty", ODD_ID)
"""All models, in the order of the catalogue."""
PAYG_IDS = ("test/one", "test/two")
BASIC_IDS = ("test/one", "test/two", "test/free", ODD_ID)

CAPABILITIES = ("chat", "reasoning", "vision", "streaming", "tools", "json_output")

WHOLE = {
    "id": "test/one",
    "object": "model",
    "display_name": "Test One",
    "provider": "testers",
    "type": "chat",
    "description": "Answers for one credit.",
    "credits_per_request": 1,
    "capabilities": {
        "chat": True,
        "reasoning": True,
        "vision": False,
        "streaming": False,
        "tools": False,
        "json_output": False,
    },
    "pricing": {"billing_unit": "request", "credits": 1, "payg_amount": 150, "currency": "IRT"},
    "available": True,
    "status": "available",
}
"""test/one as the catalogue describes it."""
ROWS_OF_THE_OBJECT = (
    "spec.model.id",
    "spec.model.object",
    "spec.model.display_name",
    "spec.model.provider",
    "spec.model.type",
    "spec.model.description",
    "spec.model.credits_per_request",
    "spec.model.capabilities",
    "spec.model.pricing.billing_unit",
    "spec.model.pricing.credits",
    "spec.model.pricing.payg_amount",
    "spec.model.pricing.currency",
    "spec.model.available",
    "spec.model.status",
)

pytestmark = pytest.mark.usefixtures("backend")


# The object


@rows("spec.endpoints.3", *ROWS_OF_THE_OBJECT, "decisions.models.1")
def test_the_whole_object(service: RunningService) -> None:
    """One model, not wrapped in `data`: every member as the catalogue says, and no other."""
    answer = _retrieve(service, service.customer(), "test/one")
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-request-id"]
    assert answer.json == WHOLE


@rows("spec.endpoints.2", "spec.model.object")
def test_the_whole_list(service: RunningService) -> None:
    """Object `list` and `data`, nothing else; each entry is what GET /models/{model_id} answers."""
    customer = service.customer()
    answer = service.get(MODELS, customer)
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-request-id"]
    assert sorted(answer.json) == ["data", "object"]
    assert answer.json["object"] == "list"
    assert answer.json["data"] == [_retrieve(service, customer, id_).json for id_ in IDS]
    assert answer.json["data"][0] == WHOLE


@rows(*ROWS_OF_THE_OBJECT)
def test_every_member_of_every_model_has_its_type(service: RunningService) -> None:
    """The same members in each, also where the catalogue leaves them out."""
    for model in _models(service, service.customer()):
        assert {name: type(value) for name, value in model.items()} == {
            name: type(value) for name, value in WHOLE.items()
        }
        assert {name: type(value) for name, value in model["capabilities"].items()} == dict.fromkeys(CAPABILITIES, bool)
        assert {name: type(value) for name, value in model["pricing"].items()} == {
            "billing_unit": str,
            "credits": int,
            "payg_amount": int,
            "currency": str,
        }
        assert (model["object"], model["type"], model["pricing"]["billing_unit"]) == ("model", "chat", "request")


@rows("spec.model.display_name", "spec.model.provider", "spec.model.description", "spec.model.capabilities")
def test_what_the_catalogue_leaves_out_has_a_sensible_value(service: RunningService) -> None:
    """The id is the name, its first part the provider, the description blank; it can chat."""
    model = _retrieve(service, service.customer(), "test/two").json
    assert (model["display_name"], model["provider"], model["description"]) == ("test/two", "test", "")
    assert [name for name in CAPABILITIES if model["capabilities"][name]] == ["chat"]


@rows("spec.model.credits_per_request", "spec.model.pricing.credits")
def test_the_price_is_the_one_that_is_charged(service: RunningService) -> None:
    """credits_per_request and pricing.credits are what a call of the model costs, of each model."""
    customer = service.customer(balance=3_000_000)
    for model in _models(service, customer):
        charged = service.chat(customer, model=model["id"]).json["usage"]["credits"]
        assert model["credits_per_request"] == model["pricing"]["credits"] == charged


@rows("spec.model.available", "spec.model.status", "decisions.models.1")
def test_models_are_ready(service: RunningService) -> None:
    """With a backend that can be asked, `available` is true and says so in words too."""
    ready = [(model["available"], model["status"]) for model in _models(service, service.customer())]
    assert ready == [(True, "available")] * len(IDS)


# Which models


@rows("spec.endpoints.2", "spec.authentication.rule_6", "decisions.models.1")
def test_the_list_is_in_the_order_of_the_catalogue(service: RunningService) -> None:
    """Whatever the order in which plan and key name them."""
    assert _listed(service, service.customer()) == IDS
    assert _listed(service, service.customer(models=(ODD_ID, "test/two", "test/one"))) == (*PAYG_IDS, ODD_ID)


@rows("spec.authentication.rule_6", "spec.endpoints.2", "spec.endpoints.rule_1")
def test_the_plan_narrows(service: RunningService) -> None:
    """What it does not name is neither listed nor shown."""
    customer = service.customer("basic")
    assert _listed(service, customer) == BASIC_IDS
    assert_refused(_retrieve(service, customer, "test/dear"), 404, "model_not_found", counted=False)


@rows("spec.authentication.rule_6", "spec.endpoints.2")
def test_the_key_narrows_the_plan(service: RunningService) -> None:
    """Another key of the same account sees all."""
    customer = service.customer("basic", models=("test/two",))
    assert _listed(service, customer) == ("test/two",)
    assert_refused(_retrieve(service, customer, "test/one"), 404, "model_not_found", counted=False)
    assert _listed(service, service.another_key(customer)) == BASIC_IDS


@rows("spec.authentication.rule_6")
def test_the_key_never_widens_the_plan(service: RunningService) -> None:
    """A model that the key names and the plan does not is not to be had."""
    assert _listed(service, service.customer("basic", models=("test/dear", "test/two"))) == ("test/two",)
    assert _listed(service, service.customer("basic", models=("test/dear",))) == ()


@rows("decisions.models.2")
def test_without_a_plan_the_payg_section_is_listed_while_there_is_a_balance(service: RunningService) -> None:
    """Its models, narrowed by the key; none when the last credit is spent."""
    customer = service.customer(None, balance=1)
    assert _listed(service, customer) == PAYG_IDS
    assert _listed(service, service.another_key(customer, models=("test/two", "test/free"))) == ("test/two",)
    assert service.chat(customer).status == 200
    assert _listed(service, customer) == ()


@rows("decisions.models.2", "spec.endpoints.2")
def test_with_neither_plan_nor_balance_the_list_is_empty(service: RunningService) -> None:
    """200 with no model, and each single one 404."""
    customer = service.customer(None)
    answer = service.get(MODELS, customer)
    assert (answer.status, answer.json) == (200, {"object": "list", "data": []})
    for id_ in IDS:
        assert_refused(_retrieve(service, customer, id_), 404, "model_not_found", counted=False)


@rows("spec.endpoints.2", "decisions.models.1")
def test_the_list_is_the_same_when_credits_are_gone(service: RunningService) -> None:
    """An exhausted account sees what it could use."""
    customer = service.customer("three")
    for _ in range(3):
        service.chat(customer)
    assert service.chat(customer).code == "api_credits_exhausted"
    assert _listed(service, customer) == IDS
    assert _retrieve(service, customer, "test/one").json == WHOLE


@rows("spec.authentication.rule_6")
def test_a_change_of_plan_holds_from_the_next_request_on(service: RunningService) -> None:
    """The list follows at once."""
    customer = service.customer("basic")
    before = _listed(service, customer)
    service.provisioning.set_account(customer.account_id, plan="large")
    assert (before, _listed(service, customer)) == (BASIC_IDS, IDS)


def _on_the_large_plan(service: RunningService) -> Customer:
    return service.customer(balance=3_000_000)


def _on_the_basic_plan(service: RunningService) -> Customer:
    return service.customer("basic")


def _with_a_narrow_key(service: RunningService) -> Customer:
    return service.customer("basic", models=("test/free", "test/dear", ODD_ID))


def _with_a_balance_alone(service: RunningService) -> Customer:
    return service.customer(None, balance=100)


@rows("spec.model.id", "spec.endpoints.2", "spec.endpoints.rule_1", "spec.codes.model_not_found")
@pytest.mark.parametrize("make", [_on_the_large_plan, _on_the_basic_plan, _with_a_narrow_key, _with_a_balance_alone])
def test_the_list_is_exactly_what_can_be_called(
    service: RunningService, make: Callable[[RunningService], Customer]
) -> None:
    """Each listed id is served when it is sent as `model`, and each other one of the catalogue is 404."""
    customer = make(service)
    listed = _listed(service, customer)
    assert listed
    for id_ in (*IDS, "no/such-model"):
        answer = service.chat(customer, model=id_)
        if id_ in listed:
            assert answer.status == 200
            assert answer.json["model"] == id_
        else:
            assert_refused(answer, 404, "model_not_found")
            assert_refused(_retrieve(service, customer, id_), 404, "model_not_found", counted=False)


# Ids in the path


@rows("decisions.models.1", "spec.endpoints.3")
@pytest.mark.parametrize(
    "path",
    [
        "odd/a:b.c-1/x",
        "odd%2Fa%3Ab.c-1%2Fx",
        "odd%2fa%3ab%2ec%2d1%2fx",
        "odd/a%3Ab.c-1%2Fx",
        "".join(f"%{ord(letter):02X}" for letter in ODD_ID),
    ],
)
def test_odd_ids_work_as_they_are_and_percent_encoded(service: RunningService, path: str) -> None:
    """Slash, colon and dot, raw and encoded, all, some or every character, in either case."""
    answer = service.get(f"{MODELS}/{path}", service.customer())
    assert (answer.status, answer.json["id"]) == (200, ODD_ID)


@rows("decisions.models.1", "spec.model.id")
def test_an_odd_id_is_called_as_it_is_listed(service: RunningService, backend: ScriptedBackend) -> None:
    """What `data` shows goes into `model`, and comes back in the reply."""
    answer = service.chat(service.customer(), model=ODD_ID)
    assert (answer.status, answer.json["model"]) == (200, ODD_ID)
    assert backend.received[0].body["model"] == "odd"


@rows("decisions.models.1", "spec.codes.model_not_found", "spec.endpoints.rule_1")
@pytest.mark.parametrize(
    "path",
    [
        "no/such-model",
        "test",
        "one",
        "Test/One",
        "test/one/",
        "/test/one",
        "test//one",
        "test/one%20",
        "%20test/one",
        "test/one%00",
        "test/one%0A",
        "test/one%0Atwo",
        "%0A",
        "test%252Fone",
        "test/on",
        "test/one2",
        "odd/../test/one",
        "*",
        "%F0%9F%92%A9",
        "%FF",
        "x" * 2_000,
    ],
)
def test_ids_are_matched_exactly(service: RunningService, path: str) -> None:
    """Nothing but the id itself finds a model: no other case, no part, no white space, no second decoding."""
    answer = service.get(f"{MODELS}/{path}", service.customer())
    assert_refused(answer, 404, "model_not_found", counted=False)


@rows("decisions.order_of_checks.1")
@pytest.mark.parametrize("path", [f"{MODELS}%0A", f"{USAGE}%0A", f"{CHAT}%0A", "/api/v1/openapi.json%0A", "/docs%0A"])
def test_paths_are_matched_exactly(service: RunningService, path: str) -> None:
    """A line feed at the end makes it another path, and at that there is nothing."""
    assert_own_error(service.get(path, service.customer()), 404)


@rows("spec.codes.model_not_found", "spec.endpoints.rule_1")
def test_an_unknown_model_and_one_that_is_not_allowed_cannot_be_told_apart(service: RunningService) -> None:
    """404 with the same body for both, and no credit moves."""
    customer = service.customer("basic")
    unknown, not_allowed = (service.chat(customer, model=id_) for id_ in ("no/such-model", "test/dear"))
    assert_refused(unknown, 404, "model_not_found")
    assert_refused(not_allowed, 404, "model_not_found")
    assert unknown.body == not_allowed.body
    assert service.account(customer).used == 0


@rows("spec.codes.model_not_found")
@pytest.mark.parametrize("model", ["", " test/one", "TEST/ONE", "*", 1, True, ["test/one"], {"id": "test/one"}])
def test_any_other_value_of_model_is_not_found(service: RunningService, model: object) -> None:
    """Whatever its type: only a listed id is one."""
    assert_refused(service.chat(service.customer(), model=model), 404, "model_not_found")


@rows("spec.endpoints.2", "spec.endpoints.3")
def test_parameters_that_do_not_exist_are_ignored(service: RunningService) -> None:
    """There are none, so they change nothing."""
    customer = service.customer()
    assert service.get(f"{MODELS}?limit=1&type=x", customer).body == service.get(MODELS, customer).body
    assert _retrieve(service, customer, "test/one?x=1").json == WHOLE


def test_the_odd_id_quoted_by_the_standard_library_is_found(service: RunningService) -> None:
    """As clients do it that quote every id whole."""
    answer = service.get(f"{MODELS}/{quote(ODD_ID, safe='')}", service.customer())
    assert answer.status == 200
    assert rate_limit_headers(answer) == set()


def _retrieve(service: RunningService, customer: Customer, id_: str) -> Answer:
    return service.get(f"{MODELS}/{id_}", customer)


def _models(service: RunningService, customer: Customer) -> list[dict[str, Any]]:
    models: list[dict[str, Any]] = service.get(MODELS, customer).json["data"]
    return models


def _listed(service: RunningService, customer: Customer) -> tuple[str, ...]:
    return tuple(model["id"] for model in _models(service, customer))
