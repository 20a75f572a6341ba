"""Read what a request asks for: ids, parameters and bodies, exactly as the contract has them."""

import re
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from starlette.requests import Request

from tarazu.api.admin.errors import AdminError, AdminRefusal, AdminRefusedError, MemberDetails, refused
from tarazu.api.body import BROKEN_OFF, BodyReader
from tarazu.api.head import head_of
from tarazu.domain.errors import Error, Refusal

ID_PARAMETERS = ("account_id", "before")
"""Parameters of the query that hold an id."""
NAME_CHARACTERS_MAX = 100
"""Of an unknown member, in the message that names it."""

_ID = re.compile(r"[a-z]{1,8}_[0-9A-Za-z]{1,64}")
_UNKNOWN = re.compile(r"Object contains unknown field `(.*?)`(?: - at .*)?", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.*?)`")
_AT_MEMBER = re.compile(r"(?P<fault>.*) - at `\$\.(?P<member>[a-z_]+).*", re.DOTALL)
_EXPECTED = re.compile(r"Expected `(?P<kinds>[^`]*)`")
_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "str": "a text",
    "null": "null",
    "array": "a list",
    "object": "an object",
}
"""What the decoder expected, in words."""
_OF_VALUES = ("Invalid enum value", "Integer value out of range", "Number out of range")
"""What the decoder says when the type is right and the value is not."""
_ERRORS_OF_BODIES = {
    Error.UNSUPPORTED_MEDIA_TYPE: AdminError.UNSUPPORTED_MEDIA_TYPE,
    Error.INPUT_TOO_LARGE: AdminError.INPUT_TOO_LARGE,
    Error.REQUEST_TIMEOUT: AdminError.REQUEST_TIMEOUT,
    Error.SYSTEM_STOPPED: AdminError.UNAVAILABLE,
}

Kind = TypeVar("Kind", bound=Struct)


def read_id(text: str) -> str:
    """Let what can be an id pass.

    Raises:
        AdminRefusedError: it cannot, so there is no such thing, and the books need not be asked.
    """
    if _ID.fullmatch(text) is None:
        raise refused(AdminError.NOT_THERE)
    return text


def read_query(request: Request, kind: type[Kind]) -> Kind:
    """Read the parameters of the query.

    Raises:
        AdminRefusedError: one is unknown, twice there, or of the wrong type; or names what cannot be there.
    """
    items = request.query_params.multi_items()
    parameters = dict(items)
    if len(parameters) < len(items):
        raise refused(AdminError.INVALID_REQUEST, "Give each parameter once.", MemberDetails(None))
    try:
        query = msgspec.convert(parameters, kind, strict=False)
    except msgspec.ValidationError as error:
        raise _invalid(error, "parameter") from None
    for name in ID_PARAMETERS:
        if name in parameters:
            read_id(parameters[name])
    return query


async def read_body(request: Request, bodies: BodyReader, kind: type[Kind]) -> Kind:
    """Read the body.

    Raises:
        AdminRefusedError: it is no JSON object, or has a member that is unknown or of the wrong type.
    """
    body = await bodies.read(head_of(request.scope), request.receive)
    if isinstance(body, Refusal):
        raise AdminRefusedError(_refusal_of_body(body))
    try:
        return msgspec.convert(_with_whole_numbers(msgspec.json.decode(body)), kind)
    except msgspec.ValidationError as error:
        raise _invalid(error, "member") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # The decoder's own words may quote the body.
        raise refused(AdminError.INVALID_REQUEST, "The body is not valid JSON in UTF-8.", MemberDetails(None)) from None


def _with_whole_numbers(body: Any) -> Any:
    """Let a whole number be written with a fraction of zero (5.0), as in JSON Schema."""
    if not isinstance(body, dict):
        return body
    return {
        name: int(value) if isinstance(value, float) and value.is_integer() else value for name, value in body.items()
    }


def _refusal_of_body(refusal: Refusal) -> AdminRefusal:
    if refusal.error is Error.INVALID_REQUEST:
        return AdminRefusal(error=AdminError.INVALID_REQUEST, message=BROKEN_OFF, details=MemberDetails(None))
    return AdminRefusal(error=_ERRORS_OF_BODIES[refusal.error], retry_after_s=refusal.retry_after_s)


def _invalid(error: msgspec.ValidationError, noun: str) -> AdminRefusedError:
    """Say what the decoder found, without the values that it quotes."""
    text = str(error)
    if unknown := _UNKNOWN.fullmatch(text):
        name = unknown[1][:NAME_CHARACTERS_MAX]
        return refused(AdminError.INVALID_REQUEST, f"There is no {noun} {name!r} here.", MemberDetails(name))
    if missing := _MISSING.fullmatch(text):
        message = f"The {noun} {missing[1]} must be there."
        return refused(AdminError.INVALID_REQUEST, message, MemberDetails(missing[1]))
    found = _AT_MEMBER.fullmatch(text)
    if found is None:
        is_no_object = text.startswith("Expected `object`")
        message = "The body must be a JSON object." if is_no_object else "The body has a number that is out of bounds."
        return refused(AdminError.INVALID_REQUEST, message, MemberDetails(None))
    details = MemberDetails(found["member"])
    if found["fault"].startswith(_OF_VALUES):
        return refused(
            AdminError.INVALID_VALUE, f"The {noun} {details.member} has a value that it may not have.", details
        )
    wanted = _EXPECTED.match(found["fault"])
    if wanted is None:
        return refused(AdminError.INVALID_REQUEST, f"The {noun} {details.member} is not as it must be.", details)
    kinds = " or ".join(_WORDS.get(kind.strip(), kind.strip()) for kind in wanted["kinds"].split("|"))
    return refused(AdminError.INVALID_REQUEST, f"The {noun} {details.member} must be {kinds}.", details)
