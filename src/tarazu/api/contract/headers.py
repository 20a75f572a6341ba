"""The headers that answers carry (decisions, Reply), and which answer carries which."""

from http import HTTPStatus

from tarazu.api.contract.structure import Header, Reference, Schema

REQUEST_ID = "X-Request-Id"
RATE_LIMIT = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")
RETRY_AFTER = "Retry-After"
WWW_AUTHENTICATE = "WWW-Authenticate"
ALLOW = "Allow"
REPLAYED = "Idempotent-Replayed"
DROPPED_MESSAGES, IGNORED_PARAMETERS = "X-Dropped-Messages", "X-Ignored-Parameters"

BEFORE_THE_WINDOWS = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.SERVICE_UNAVAILABLE)
"""Statuses of the chat endpoint that are answered, or may be, before a request has reached the minute windows."""

BEFORE_THE_BODY = (
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
)
"""Statuses that are answered before the body has been read."""


def _count(minimum: int) -> Schema:
    return {"type": "integer", "minimum": minimum}


HEADERS = {
    REQUEST_ID: Header(
        description="Names this one request. Tell it to the operator when something goes wrong.",
        required=True,
        schema={"type": "string", "minLength": 1},
        example="req_0V2yJ8kQm4tB7wXc1NfRpL2",
    ),
    "X-RateLimit-Limit": Header(
        description="Maximum requests in one minute, by the limit that binds tighter now: the account's or the key's.",
        required=True,
        schema=_count(1),
        example=60,
    ),
    "X-RateLimit-Remaining": Header(
        description="Requests left in the current window.", required=True, schema=_count(0), example=59
    ),
    "X-RateLimit-Reset": Header(
        description="Seconds until the window resets.", required=True, schema=_count(1), example=42
    ),
    RETRY_AFTER: Header(
        description="Whole seconds to wait before trying again.", required=True, schema=_count(1), example=42
    ),
    WWW_AUTHENTICATE: Header(
        description="How to authenticate.",
        required=True,
        schema={"type": "string", "pattern": "^Bearer"},
        example="Bearer",
    ),
    ALLOW: Header(
        description="The methods that the path takes, with commas between them.",
        required=True,
        schema={"type": "string", "minLength": 1},
        example="POST",
    ),
    REPLAYED: Header(
        description="`true` when the answer is the stored reply of an earlier request with the same Idempotency-Key.",
        schema={"type": "string", "const": "true"},
        example="true",
    ),
    DROPPED_MESSAGES: Header(
        description="How many elements of `messages` were left out, since they are not valid; not there for none.",
        schema=_count(1),
        example=2,
    ),
    IGNORED_PARAMETERS: Header(
        description=(
            "Members of the body that are not read, with commas between them, at most 16; not there for none. So a "
            "client that asks for tools, or for three replies, can be seen to get neither."
        ),
        schema={"type": "string", "minLength": 1},
        example="n, tools",
    ),
}


def headers_of(status: int, *, counts_requests: bool = False) -> dict[str, Reference]:
    """Tell what an answer of this status carries; `counts_requests` for the endpoint that has a rate limit."""
    names = [REQUEST_ID]
    if counts_requests and status not in BEFORE_THE_WINDOWS:
        names += RATE_LIMIT
    if counts_requests and status == HTTPStatus.OK:
        names.append(REPLAYED)
    if counts_requests and status not in BEFORE_THE_BODY:
        names += [DROPPED_MESSAGES, IGNORED_PARAMETERS]
    if status in (HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE):
        names.append(RETRY_AFTER)
    if status == HTTPStatus.UNAUTHORIZED:
        names.append(WWW_AUTHENTICATE)
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        names.append(ALLOW)
    return {name: Reference(f"#/components/headers/{name}") for name in names}
