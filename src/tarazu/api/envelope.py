"""Write answers: JSON bodies, the error envelope, and the headers that go with them."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from starlette.responses import Response
from starlette.types import Send

from tarazu.api.objects import DomainError, DomainErrorEnvelope
from tarazu.domain.calendar import seconds_until
from tarazu.domain.errors import Error, ErrorKind, NoDetails, Refusal
from tarazu.domain.rate_limit import RateLimit

Headers = list[tuple[bytes, bytes]]

JSON = "application/json"

CONTENT_TYPE = (b"content-type", JSON.encode())
SAFE_HEADERS = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))
"""On every JSON answer: keys, replies and balances are kept in no cache, and no browser takes them for a page."""

OF_SETTINGS = (Error.STREAMING_NOT_SUPPORTED, Error.NOT_FOUND)
"""What a person gets over by a setting of the client."""

_encode = msgspec.json.Encoder().encode


class AnyRefusal(Protocol):
    """A request refused: by the API, or by the admin API, which has a table of errors of its own."""

    @property
    def kind(self) -> ErrorKind:
        """The row of the table."""
        ...

    @property
    def message(self) -> str | None:
        """What stands in place of the row's message."""
        ...

    @property
    def details(self) -> Struct:
        """More to know."""
        ...

    @property
    def retry_after_s(self) -> int | None:
        """When it is worth another try."""
        ...


def naming_clients(refusal: Refusal, clients_url: str) -> Refusal:
    """Name the page about clients where a setting is what is wrong: a client's user reads the text and nothing else."""
    if refusal.error not in OF_SETTINGS or refusal.message is not None:
        return refusal
    return replace(refusal, message=f"{refusal.kind.message} How, in many clients: {clients_url}")


def error_body(refusal: AnyRefusal) -> Struct:
    """Make the body: an `error` object."""
    return kind_body(refusal.kind, refusal.message, refusal.details)


def kind_body(kind: ErrorKind, message: str | None = None, details: Struct | None = None) -> Struct:
    """Make the body of a refusal of this kind."""
    error = DomainError(code=kind.code, message=message or kind.message, details=details or NoDetails())
    return DomainErrorEnvelope(error=error)


def error_headers(refusal: AnyRefusal) -> Headers:
    """Make the headers that a refusal carries (decisions, Reply)."""
    headers: Headers = []
    if refusal.kind.status == HTTPStatus.UNAUTHORIZED:
        headers.append((b"www-authenticate", b"Bearer"))
    if refusal.retry_after_s is not None:
        headers.append((b"retry-after", str(refusal.retry_after_s).encode()))
    return headers


def rate_limit_headers(limit: RateLimit, now_ms: int) -> Headers:
    """Make the headers of every answer that reached the windows; the reset is in seconds from now."""
    return [
        (b"x-ratelimit-limit", str(limit.limit_per_minute).encode()),
        (b"x-ratelimit-remaining", str(limit.remaining).encode()),
        (b"x-ratelimit-reset", str(seconds_until(limit.resets_at_ms, now_ms)).encode()),
    ]


async def send_json(send: Send, status: int, body: Struct, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
    """Send one JSON answer."""
    payload = _encode(body)
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [
                CONTENT_TYPE,
                (b"content-length", str(len(payload)).encode()),
                *SAFE_HEADERS,
                *headers,
            ],
        }
    )
    await send({"type": "http.response.body", "body": payload})


def json_response(body: Struct, status: int = HTTPStatus.OK) -> Response:
    """Make an answer that is no refusal."""
    return safe_response(_encode(body), status)


def refusal_response(refusal: AnyRefusal) -> Response:
    """Make the answer to a refused request."""
    response = safe_response(_encode(error_body(refusal)), refusal.kind.status)
    response.raw_headers.extend(error_headers(refusal))
    return response


def safe_response(payload: bytes, status: int = HTTPStatus.OK) -> Response:
    """Make a JSON answer of its bytes."""
    response = Response(payload, status, media_type=JSON)
    response.raw_headers.extend(SAFE_HEADERS)
    return response
