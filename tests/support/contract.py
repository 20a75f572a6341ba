"""The contract as tests read it: plain JSON, its operations, its schemas made into validators."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
from msgspec import Struct

from tarazu.api.openapi import document_json

DOCUMENT: dict[str, Any] = json.loads(document_json())
SCHEMAS: dict[str, dict[str, Any]] = DOCUMENT["components"]["schemas"]
SPECIFICATION = Path(__file__).parents[2] / "docs/specification.md"


class OperationAnswer(Struct, frozen=True):
    """One status of one operation; `operation_id` is empty for the answers that belong to none."""

    operation_id: str
    status: str
    response: dict[str, Any]


def operations() -> dict[str, dict[str, Any]]:
    """List the operations by id."""
    return {
        operation["operationId"]: operation | {"method": method.upper(), "path": path}
        for path, item in DOCUMENT["paths"].items()
        for method, operation in item.items()
    }


def answers() -> Iterator[OperationAnswer]:
    """List every answer of the contract."""
    for operation_id, operation in operations().items():
        for status, response in operation["responses"].items():
            yield OperationAnswer(operation_id, status, response)
    for response in DOCUMENT["components"]["responses"].values():
        yield OperationAnswer("", "", response)


def media(body: dict[str, Any]) -> dict[str, Any]:
    """Take the one media type of a body."""
    (name, found), *_ = body["content"].items()
    assert name == "application/json"
    media_type: dict[str, Any] = found
    return media_type


def validator(schema: dict[str, Any]) -> jsonschema_rs.Draft202012Validator:
    """Make a validator for a schema of the contract; its references are followed, its formats are checked."""
    whole = {**schema, "components": DOCUMENT["components"]}
    return jsonschema_rs.Draft202012Validator(whole, validate_formats=True)


def validate_document(document: dict[str, Any]) -> None:
    """Raise where a document is not valid by the JSON Schema of OpenAPI 3.1."""
    from schemathesis.specs.openapi.definitions import OPENAPI_31_VALIDATOR  # noqa: PLC0415 - slow to import

    OPENAPI_31_VALIDATOR.validate(document)


def specified_members(heading: str) -> list[str]:
    """Read the members of an object from the specification's table: `choices[].index`, `usage.credits`."""
    text = SPECIFICATION.read_text(encoding="utf-8")
    section = re.search(rf"^### {re.escape(heading)}.*?(?=^##)", text, re.MULTILINE | re.DOTALL)
    assert section is not None, heading
    rows = re.findall(r"^\| ([a-z][^ ]*) \|", section[0], re.MULTILINE)
    assert rows, heading
    return rows


def member(schema_name: str, path: str) -> dict[str, Any]:
    """Follow a path of members through the schemas, to the schema of the last one."""
    schema: dict[str, Any] = SCHEMAS[schema_name]
    for step in path.split("."):
        name, is_array = step.removesuffix("[]"), step.endswith("[]")
        found = _resolved(schema)["properties"][name]
        schema = found["items"] if is_array else found
    return schema


def _resolved(schema: dict[str, Any]) -> dict[str, Any]:
    reference = schema.get("$ref")
    return schema if reference is None else SCHEMAS[reference.rpartition("/")[2]]
