"""Every way in which the admin API says no, and the one table that gives each its status, code and message."""

from enum import Enum
from typing import Annotated

from msgspec import Meta, Struct

from tarazu.domain.errors import Error, ErrorKind, NoDetails


class AdminError(Enum):
    """The table. What every HTTP service may say is said as in the public API."""

    INVALID_REQUEST = ErrorKind(400, "invalid_request", "The request is not what this operation takes.")
    MISSING_TOKEN = ErrorKind(
        401, "missing_token", "No admin token was sent. Add the header 'Authorization: Bearer <ADMIN_TOKEN>'."
    )
    INVALID_TOKEN = ErrorKind(
        401, "invalid_token", "The admin token is malformed, unknown, revoked or expired. Check or replace it."
    )
    INSUFFICIENT_SCOPE = ErrorKind(403, "insufficient_scope", "The admin token does not have the scope for this.")
    NOT_THERE = ErrorKind(404, "not_found", "What the request is about is not there.")
    CONFLICT = ErrorKind(409, "conflict", "The request contradicts what is in the books.")
    AUDIT_RUNNING = ErrorKind(409, "audit_running", "An audit is running already. Ask again when it has ended.")
    INVALID_VALUE = ErrorKind(422, "invalid_value", "A value is not one that it may be.")
    UNAVAILABLE = ErrorKind(503, "unavailable", "The books cannot be used now. Retry as Retry-After says.")

    NOT_FOUND = Error.NOT_FOUND.value
    METHOD_NOT_ALLOWED = Error.METHOD_NOT_ALLOWED.value
    REQUEST_TIMEOUT = Error.REQUEST_TIMEOUT.value
    INPUT_TOO_LARGE = ErrorKind(413, "input_too_large", "The body is too large. Send at most 1 MiB.")
    UNSUPPORTED_MEDIA_TYPE = Error.UNSUPPORTED_MEDIA_TYPE.value
    HEADERS_TOO_LARGE = Error.HEADERS_TOO_LARGE.value
    INTERNAL_ERROR = Error.INTERNAL_ERROR.value


class MemberDetails(Struct, frozen=True):
    """`details` of invalid_request, invalid_value and conflict."""

    member: Annotated[
        str | None,
        Meta(description="The member of the body, or the parameter, that it is about; null where it is none."),
    ]


class ScopeDetails(Struct, frozen=True):
    """`details` of insufficient_scope."""

    scope: Annotated[str, Meta(description="The scope that the token would need.")]


class AdminRefusal(Struct, frozen=True, kw_only=True):
    """One request refused. `message` overrides the table's; `retry_after_s` is what Retry-After says."""

    error: AdminError
    message: str | None = None
    details: NoDetails | MemberDetails | ScopeDetails = NoDetails()
    retry_after_s: int | None = None

    @property
    def kind(self) -> ErrorKind:
        """The row of the table."""
        kind: ErrorKind = self.error.value
        return kind


class AdminRefusedError(Exception):
    """Carries a refusal to where it is answered."""

    def __init__(self, refusal: AdminRefusal) -> None:
        super().__init__(refusal.error.name)
        self.refusal = refusal


def refused(
    error: AdminError, message: str | None = None, details: NoDetails | MemberDetails | ScopeDetails | None = None
) -> AdminRefusedError:
    """Make the error to raise."""
    return AdminRefusedError(AdminRefusal(error=error, message=message, details=details or NoDetails()))
