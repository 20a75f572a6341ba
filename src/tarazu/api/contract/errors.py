"""What each error of the table means and what to do about it, and the responses that are made from that."""

from collections.abc import Callable, Collection, Mapping
from enum import Enum
from functools import partial
from typing import TypeVar

import msgspec
from msgspec import Struct

from tarazu.api.contract.headers import headers_of
from tarazu.api.contract.schemas import reference
from tarazu.api.contract.structure import Example, MediaType, Reference, Response, Schema
from tarazu.api.envelope import JSON, AnyRefusal, error_body, kind_body
from tarazu.api.objects import DomainErrorEnvelope
from tarazu.domain.errors import Error, ExhaustedDetails, RateLimitDetails, Refusal
from tarazu.domain.prompt import INPUT_CHARACTERS_MAX, MESSAGES_MAX, read_chat_request


class ErrorNote(Struct, frozen=True, kw_only=True):
    """One row of the reference: `cause` and `remedy` are CommonMark; `refusals` are examples by name."""

    cause: str
    remedy: str
    details: type[Struct] | None = None
    refusals: Mapping[str, AnyRefusal] = {}


Kind = TypeVar("Kind", bound=Enum)
"""A table of errors: each member's value is an ErrorKind."""
Notes = Mapping[Kind, ErrorNote]


def _refused(body: bytes) -> Refusal:
    """Take the domain's own answer to a body, so that the example is what is really answered."""
    refusal = read_chat_request(body)
    assert isinstance(refusal, Refusal)
    return refusal


NOTES = {
    Error.STREAMING_NOT_SUPPORTED: ErrorNote(
        cause="`stream` is true.",
        remedy="Send `stream` false or leave it out.",
        refusals={"streaming_not_supported": _refused(b'{"prompt": "Hello", "stream": true}')},
    ),
    Error.MISSING_API_KEY: ErrorNote(
        cause="No Authorization header was sent, or a blank one.",
        remedy="Add `Authorization: Bearer <API_KEY>`.",
    ),
    Error.INVALID_API_KEY: ErrorNote(
        cause="The Authorization header is malformed, or the key is unknown, revoked or expired.",
        remedy="Check the header and the key, or replace the key.",
    ),
    Error.UPGRADE_REQUIRED: ErrorNote(
        cause="The account has neither a plan nor a pay-as-you-go balance.",
        remedy="Get a plan or API credit.",
    ),
    Error.API_CREDITS_EXHAUSTED: ErrorNote(
        cause="Neither the remaining quota nor the balance covers the model's credits.",
        remedy="Check GET /usage and top up, or pick a cheaper model.",
        details=ExhaustedDetails,
        refusals={
            "api_credits_exhausted": Refusal(
                error=Error.API_CREDITS_EXHAUSTED,
                details=ExhaustedDetails(period="2026-03", used=998, limit=1_000, cost=5, api_credit_balance=3),
            )
        },
    ),
    Error.ACCOUNT_UNAVAILABLE: ErrorNote(
        cause="The account is unverified, inactive or blocked.",
        remedy="Check the account's status with the operator.",
    ),
    Error.MODEL_NOT_FOUND: ErrorNote(
        cause="There is no such model, or the plan or the key does not allow it.",
        remedy="Pick a model from GET /models.",
    ),
    Error.INPUT_TOO_LARGE: ErrorNote(
        cause=(
            f"All contents together hold more than {INPUT_CHARACTERS_MAX:,} characters, there are more than "
            f"{MESSAGES_MAX:,} messages, or the body has more than 1 MiB."
        ),
        remedy="Shorten the history or the input.",
        refusals={"input_too_large": _refused(b'{"prompt": "' + b"x" * (INPUT_CHARACTERS_MAX + 1) + b'"}')},
    ),
    Error.MESSAGES_REQUIRED: ErrorNote(
        cause="There is no valid message and no text in `prompt`, `message` or `input`.",
        remedy="Send `messages`, or one of `prompt`, `message` and `input`.",
        refusals={"messages_required": _refused(b'{"messages": []}')},
    ),
    Error.RATE_LIMIT_EXCEEDED: ErrorNote(
        cause="The account's or the key's requests of this minute are used up.",
        remedy="Wait as long as Retry-After says, then retry with backoff.",
        details=RateLimitDetails,
        refusals={
            "rate_limit_exceeded": Refusal(
                error=Error.RATE_LIMIT_EXCEEDED,
                details=RateLimitDetails(scope="account", limit_per_minute=60, resets_at="2026-03-14T09:27:00Z"),
            )
        },
    ),
    Error.UPSTREAM_ERROR: ErrorNote(
        cause="The model gave no valid reply in time. The credits have been returned.",
        remedy="Retry a few times, with backoff.",
    ),
    Error.SYSTEM_STOPPED: ErrorNote(
        cause="The service takes no requests for the moment.",
        remedy="Retry as Retry-After says.",
    ),
    Error.INVALID_REQUEST: ErrorNote(
        cause="The body is not a JSON object in UTF-8, a member that must be valid is not, or a header is not.",
        remedy="Correct what the text names.",
        refusals={
            "body_cut_short": _refused(b'{"prompt": "Hello'),
            "array_instead_of_object": _refused(b'["Hello"]'),
            "text_instead_of_boolean": _refused(b'{"prompt": "Hello", "stream": "no"}'),
            "setting_out_of_bounds": _refused(b'{"prompt": "Hello", "temperature": 3}'),
        },
    ),
    Error.NOT_FOUND: ErrorNote(
        cause="The path does not exist.",
        remedy="Check the base address and the path.",
    ),
    Error.METHOD_NOT_ALLOWED: ErrorNote(
        cause="The path exists and does not take this method.",
        remedy="Use a method from the Allow header.",
    ),
    Error.REQUEST_TIMEOUT: ErrorNote(
        cause="The body did not arrive in time.",
        remedy="Send the whole body at once.",
    ),
    Error.IDEMPOTENCY_CONFLICT: ErrorNote(
        cause="A request of the account with this Idempotency-Key is still running.",
        remedy="Retry as Retry-After says, to get its reply.",
    ),
    Error.UNSUPPORTED_MEDIA_TYPE: ErrorNote(
        cause="The body is not declared as JSON in UTF-8, or it is compressed.",
        remedy="Send `Content-Type: application/json` and no Content-Encoding.",
    ),
    Error.IDEMPOTENCY_MISMATCH: ErrorNote(
        cause=(
            "The account has sent this Idempotency-Key with another body within 24 hours, or the reply to it is not "
            "kept any more."
        ),
        remedy="Send another key with another request, and the same body with the same key.",
    ),
    Error.HEADERS_TOO_LARGE: ErrorNote(
        cause="A header holds more than 8 KiB, or the head of the request more than 32 KiB.",
        remedy="Send smaller headers, and text in the body.",
    ),
    Error.INTERNAL_ERROR: ErrorNote(
        cause="The service has a fault.",
        remedy="Tell the operator the X-Request-Id.",
    ),
}


def error_responses(errors: Collection[Error], *, counts_requests: bool = False) -> dict[str, Response]:
    """Make the responses for the errors that an operation can answer with, one for each status."""
    return responses_to(errors, NOTES, partial(headers_of, counts_requests=counts_requests))


def responses_to(
    errors: Collection[Kind], notes: Notes[Kind], headers: Callable[[int], dict[str, Reference]]
) -> dict[str, Response]:
    """Make the responses for errors of any table, one for each status; `headers` tells what a status carries."""
    by_status: dict[int, list[Kind]] = {}
    for error in notes:  # in the order of the table
        if error in errors:
            by_status.setdefault(error.value.status, []).append(error)
    return {
        str(status): Response(
            description="\n".join(f"`{error.value.code}`: {notes[error].cause}" for error in of_status),
            headers=headers(status),
            content={JSON: MediaType(_one_of(of_status, notes), _examples(of_status, notes))},
        )
        for status, of_status in sorted(by_status.items())
    }


def errors_table(notes: Notes[Kind]) -> str:
    """Write the reference as a table in CommonMark."""
    rows = [
        f"| {error.value.status} | `{error.value.code}` | {note.cause} | {note.remedy} |"
        for error, note in notes.items()
    ]
    return "\n".join(["| Status | `error.code` | Cause | Remedy |", "|---|---|---|---|", *rows])


def body_example(error: Kind, notes: Notes[Kind], name: str | None = None) -> str:
    """Write the body that an error is answered with, as it is read best: its named example, or its usual one."""
    body = kind_body(error.value) if name is None else error_body(notes[error].refusals[name])
    return msgspec.json.format(msgspec.json.encode(body), indent=2).decode()


def _one_of(errors: list[Kind], notes: Notes[Kind]) -> Schema:
    schemas = [_schema(error, notes[error].details) for error in errors]
    return schemas[0] if len(schemas) == 1 else {"oneOf": schemas}


def _schema(error: Enum, details: type[Struct] | None) -> Schema:
    members: dict[str, Schema] = {"code": {"const": error.value.code}}
    if details is not None:
        members["details"] = reference(details.__name__)
    envelope = reference(DomainErrorEnvelope.__name__)
    return {"allOf": [envelope, {"properties": {"error": {"properties": members}}}]}


def _examples(errors: list[Kind], notes: Notes[Kind]) -> dict[str, Example]:
    return {
        name: Example(name.replace("_", " ").capitalize(), msgspec.to_builtins(body))
        for error in errors
        for name, body in _bodies(error, notes[error]).items()
    }


def _bodies(error: Enum, note: ErrorNote) -> dict[str, Struct]:
    if not note.refusals:
        return {error.name.lower(): kind_body(error.value)}
    return {name: error_body(refusal) for name, refusal in note.refusals.items()}
