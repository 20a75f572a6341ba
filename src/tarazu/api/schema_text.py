"""Say in words what a JSON Schema of the contract asks for. All texts are CommonMark."""

from collections.abc import Iterator

import msgspec
from msgspec import Struct

from tarazu.api.contract.structure import Operation, Schema

ALTERNATIVES = ("oneOf", "anyOf")


class Member(Struct, frozen=True, kw_only=True):
    """One member of an object, as a row of its table."""

    name: str
    type: str
    required: str
    meaning: str


def members(schema: Schema) -> Iterator[Member]:
    """List the members of an object's schema.

    Where an object must have one of several members, each of these has its type in the alternative that asks for it.
    """
    alternatives = [alternative for keyword in ALTERNATIVES for alternative in schema.get(keyword, ())]
    for name, member in schema["properties"].items():
        homes = [alternative for alternative in alternatives if name in alternative["required"]]
        required = "yes" if name in schema.get("required", ()) else "one of them" if homes else "no"
        typed = homes[0]["properties"][name] if homes else member
        yield Member(name=name, type=type_text(typed), required=required, meaning=member.get("description", ""))


def parameters(operation: Operation) -> Iterator[Member]:
    """List the parameters of an operation, as rows of such a table."""
    for parameter in operation.parameters:
        yield Member(
            name=parameter.name,
            type=f"{type_text(parameter.schema)} in the {parameter.location}",
            required="yes" if parameter.required else "no",
            meaning=parameter.description,
        )


def body_text(schema: Schema) -> str:
    """Say which objects a body may be."""
    for keyword in ALTERNATIVES:
        if keyword in schema:
            return " or ".join(map(body_text, schema[keyword]))
    if "allOf" not in schema:
        return type_text(schema)
    envelope, narrowing = schema["allOf"]
    inner = narrowing["properties"]["error"]["properties"]
    details = f", `details` is {type_text(inner['details'])}" if "details" in inner else ""
    return f"{type_text(envelope)} (`code` is {type_text(inner['code'])}{details})"


def type_text(schema: Schema) -> str:
    """Say what a value may be: its type with a link to the object, its only values, its bounds."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name})"
    if "const" in schema:
        return _code(schema["const"])
    if "enum" in schema:
        return " or ".join(map(_code, schema["enum"]))
    if "anyOf" in schema:
        return " or ".join(map(type_text, schema["anyOf"])) + _bounds_text(schema)
    types = schema.get("type", "any")
    names = [types] if isinstance(types, str) else types
    text = " or ".join(_array_text(schema) if name == "array" else name for name in names)
    return text + _bounds_text(schema)


def _array_text(schema: Schema) -> str:
    items = schema.get("items") or schema["contains"]
    most = f"up to {schema['maxItems']} " if "maxItems" in schema else ""
    return f"array of {most}{type_text(items)}{'' if '$ref' in items else 's'}"


def _bounds_text(schema: Schema) -> str:
    if "format" in schema:
        return f", {schema['format']}"
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None and most is not None:
        return f", {least} to {most}"
    return "" if least is None else f", {least} or more"


def _code(value: object) -> str:
    """Write a value as in JSON."""
    return f"`{msgspec.json.encode(value).decode()}`"
