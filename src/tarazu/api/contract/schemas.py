"""The schemas of bodies that the API answers with, made from its objects."""

from typing import Any

import msgspec

from tarazu.api.contract.structure import Schema
from tarazu.api.objects import ChatCompletion, DomainErrorEnvelope, ModelList, UsageObject
from tarazu.domain.errors import ExhaustedDetails, RateLimitDetails

ANSWERS = (
    ChatCompletion,
    ModelList,
    UsageObject,
    DomainErrorEnvelope,
    ExhaustedDetails,
    RateLimitDetails,
)
TEMPLATE = "#/components/schemas/{name}"


def reference(name: str) -> Schema:
    """Refer to a schema of the components."""
    return {"$ref": TEMPLATE.format(name=name)}


def answer_schemas() -> dict[str, Schema]:
    """Make the schemas of all objects that an answer may hold, by name."""
    _, schemas = msgspec.json.schema_components(ANSWERS, ref_template=TEMPLATE)
    return {name: always_whole(schema) for name, schema in schemas.items()}


def always_whole(schema: Schema) -> Schema:
    """Say that every member is always there: what has a default in the code is sent like the rest.

    A member that has only one value says so with `const`. Further members may come, so none are ruled out.
    """
    properties = {name: _constant(member) for name, member in schema["properties"].items()}
    return {**schema, "properties": properties, "required": list(properties)}


def _constant(member: Schema) -> Schema:
    rest: dict[str, Any] = {name: value for name, value in member.items() if name != "default"}
    if len(rest.get("enum", ())) == 1:
        rest["const"] = rest.pop("enum")[0]
    return rest
