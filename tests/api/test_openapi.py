"""The contract: valid, complete, and true to the specification's tables and the table of errors."""

import json
import re
from typing import TYPE_CHECKING

import pytest

from tarazu.api.contract.errors import NOTES
from tarazu.api.contract.texts import text
from tarazu.api.openapi import document, document_json
from tarazu.domain.errors import Error
from tests.support.contract import (
    DOCUMENT,
    SCHEMAS,
    OperationAnswer,
    answers,
    media,
    member,
    operations,
    specified_members,
    validate_document,
    validator,
)
from tests.support.lazily import lazily

if TYPE_CHECKING:
    import schemathesis
else:
    schemathesis = lazily("schemathesis")

OBJECTS = {
    "Chat request body": "ChatRequest",
    "Message": "ChatMessage",
    "Chat completion": "ChatCompletion",
    "Model": "ModelObject",
    "Usage": "UsageObject",
    "Envelope (domain errors)": "DomainErrorEnvelope",
}
"""The specification's tables of members, and the schemas that hold them."""
RATE_LIMIT_HEADERS = {"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"}
STATUSES = {
    "createChatCompletion": "200 400 401 402 403 404 408 409 413 415 422 429 502 503",
    "listModels": "200 401 403 503",
    "retrieveModel": "200 401 403 404 503",
    "getUsage": "200 401 403 503",
    "getContract": "200",
}

each_answer = pytest.mark.parametrize(
    "answer", [pytest.param(answer, id=f"{answer.operation_id}-{answer.status}") for answer in answers()]
)


def test_it_is_an_openapi_document() -> None:
    """The document is valid by the JSON Schema of OpenAPI 3.1."""
    validate_document(DOCUMENT)


def test_schemathesis_loads_every_operation() -> None:
    """A tool that reads the document finds the five operations, and no fault in them."""
    schema = schemathesis.openapi.from_dict(DOCUMENT)
    loaded = [result.ok() for result in schema.get_all_operations() if isinstance(result, schemathesis.core.result.Ok)]
    assert {operation.label for operation in loaded} == {
        f"{operation['method']} {operation['path']}" for operation in operations().values()
    }


@pytest.mark.parametrize("operation_id", STATUSES)
def test_statuses(operation_id: str) -> None:
    """Each operation documents the statuses that it can answer with, and no others; none promises a fault of ours."""
    assert sorted(operations()[operation_id]["responses"]) == STATUSES[operation_id].split()


@pytest.mark.parametrize("error", Error)
def test_every_error_has_a_note_and_examples(error: Error) -> None:
    """Every error of the table is explained, and shown as it is answered, under its status."""
    shown = [
        example["value"]["error"]
        for answer in answers()
        for example in media(answer.response)["examples"].values()
        if answer.status in (str(error.value.status), "")
    ]
    assert NOTES[error].cause
    assert NOTES[error].remedy
    expected = [refusal.message for refusal in NOTES[error].refusals.values()] or [error.value.message]
    codes = {found["message"]: found["code"] for found in shown}
    assert [codes.get(message or error.value.message) for message in expected] == [error.value.code] * len(expected)


@each_answer
def test_examples_of_answers(answer: OperationAnswer) -> None:
    """Every answer has examples, and each is valid by the answer's schema."""
    examples = media(answer.response)["examples"]
    check = validator(media(answer.response)["schema"])
    assert examples
    for example in examples.values():
        check.validate(example["value"])


@each_answer
def test_an_error_is_told_from_other_errors(answer: OperationAnswer) -> None:
    """The schema of an answer takes no domain error with a code that it does not list."""
    envelope = {"error": {"code": "another_code", "message": "No.", "details": {}}}
    assert not validator(media(answer.response)["schema"]).is_valid(envelope)


@each_answer
def test_headers(answer: OperationAnswer) -> None:
    """Every answer carries X-Request-Id, and each status the headers that go with it."""
    headers = set(answer.response["headers"])
    assert "X-Request-Id" in headers
    assert ("WWW-Authenticate" in headers) == (answer.status == "401")
    assert ("Retry-After" in headers) == (answer.status in ("409", "429", "503"))
    reached_the_windows = answer.operation_id == "createChatCompletion" and answer.status not in ("401", "403", "503")
    assert (headers & RATE_LIMIT_HEADERS) == (RATE_LIMIT_HEADERS if reached_the_windows else set())


def test_method_not_allowed_carries_allow() -> None:
    """The answer to a method that a path does not take lists the methods that it takes."""
    assert "Allow" in DOCUMENT["components"]["responses"]["MethodNotAllowed"]["headers"]


def test_examples_of_headers() -> None:
    """The example of every header is valid by the header's schema."""
    for header in DOCUMENT["components"]["headers"].values():
        validator(header["schema"]).validate(header["example"])


def test_examples_of_requests() -> None:
    """Every example of a body and of a parameter is valid."""
    body = media(operations()["createChatCompletion"]["requestBody"])
    parameters = [found for operation in operations().values() for found in operation.get("parameters", [])]
    assert [parameter["name"] for parameter in parameters] == ["Idempotency-Key", "model_id"]
    for owner in (body, *parameters):
        assert owner["examples"]
        for example in owner["examples"].values():
            validator(owner["schema"]).validate(example["value"])


@pytest.mark.parametrize(
    ("schema", "path"),
    [(schema, path) for heading, schema in OBJECTS.items() for path in specified_members(heading)],
)
def test_every_specified_member_is_there(schema: str, path: str) -> None:
    """Every member of the specification's tables stands in the contract, with its meaning."""
    assert member(schema, path)["description"]


def test_every_member_says_what_it_means() -> None:
    """No member of any object is without a description, and no object either."""
    for name, schema in SCHEMAS.items():
        assert schema["description"], name
        for path, found in schema["properties"].items():
            assert found.get("description"), f"{name}.{path}"


@pytest.mark.parametrize("name", sorted(set(SCHEMAS) - {"ChatRequest", "ChatMessage"}))
def test_an_answer_has_all_its_members(name: str) -> None:
    """Every member of an answer's object is promised, and more may come."""
    assert SCHEMAS[name]["required"] == list(SCHEMAS[name]["properties"])
    assert "additionalProperties" not in SCHEMAS[name]


def test_only_the_contract_needs_no_key() -> None:
    """Every operation but the contract's own asks for the API key."""
    open_to_all = [name for name, operation in operations().items() if operation.get("security") == []]
    assert open_to_all == ["getContract"]
    assert DOCUMENT["security"] == [{"ApiKey": []}]


def test_the_order_of_checks_names_every_error_of_the_endpoint() -> None:
    """The table of checks has the status and code of every error but of a fault of ours, under the right status."""
    rows = re.findall(r"(\d{3}) `(\w+)`", text("create_chat_completion"))
    table = {(str(error.value.status), error.value.code) for error in set(Error) - {Error.INTERNAL_ERROR}}
    assert set(rows) == table


def test_the_introduction_has_the_table_of_errors() -> None:
    """The description lists each error with its cause and its remedy."""
    description = DOCUMENT["info"]["description"]
    for error, note in NOTES.items():
        assert f"| {error.value.status} | `{error.value.code}` | {note.cause} | {note.remedy} |" in description


def test_another_base_address() -> None:
    """The base address is where the document says it is: as the server, and in every sample."""
    base_url = "https://ai.example.com/api/v1"
    moved = document(base_url)
    samples = [
        sample.source
        for item in moved.paths.values()
        for operation in item.operations().values()
        for sample in operation.code_samples
    ]
    assert [server.url for server in moved.servers] == [base_url]
    assert samples
    assert all(base_url in source for source in samples)
    assert "127.0.0.1" not in document_json(base_url).decode()


def test_the_server_is_relative_by_default() -> None:
    """Where no address is configured, the API is on the server that the document came from."""
    assert json.loads(document_json())["servers"] == [{"url": "/api/v1"}]
