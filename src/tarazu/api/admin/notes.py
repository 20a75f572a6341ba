"""What each error of the admin API means and what to do about it."""

from tarazu.api.admin.errors import AdminError, AdminRefusal, MemberDetails, ScopeDetails
from tarazu.api.contract.errors import NOTES as PUBLIC_NOTES
from tarazu.api.contract.errors import ErrorNote
from tarazu.domain.errors import Error

NOTES = {
    AdminError.INVALID_REQUEST: ErrorNote(
        cause="The body is no JSON object, or a member or parameter is unknown, missing, or of the wrong type.",
        remedy="Correct what the message names.",
        details=MemberDetails,
        refusals={
            "unknown_member": AdminRefusal(
                error=AdminError.INVALID_REQUEST,
                message="There is no member 'credit' here.",
                details=MemberDetails("credit"),
            )
        },
    ),
    AdminError.MISSING_TOKEN: ErrorNote(
        cause="No Authorization header was sent, or a blank one.",
        remedy="Add `Authorization: Bearer <ADMIN_TOKEN>`.",
    ),
    AdminError.INVALID_TOKEN: ErrorNote(
        cause="The Authorization header is malformed, or the token is unknown, revoked or expired.",
        remedy="Check the header and the token, or make another.",
    ),
    AdminError.INSUFFICIENT_SCOPE: ErrorNote(
        cause="The token does not have the scope that the operation needs.",
        remedy="Use a token with the scope in `details`.",
        details=ScopeDetails,
        refusals={
            "insufficient_scope": AdminRefusal(
                error=AdminError.INSUFFICIENT_SCOPE,
                message="This needs the scope credits.",
                details=ScopeDetails("credits"),
            )
        },
    ),
    AdminError.NOT_THERE: ErrorNote(
        cause="There is no account, key, request, change or act with this id.",
        remedy="Check the id.",
    ),
    AdminError.CONFLICT: ErrorNote(
        cause=(
            "The request contradicts the books: a reference was used for something else, an email is taken, a key has "
            "ended, a balance has no room."
        ),
        remedy="Do what the message says; the same request again gets the same answer.",
        details=MemberDetails,
        refusals={
            "reference_used": AdminRefusal(
                error=AdminError.CONFLICT,
                message="The reference invoice-1 was used before, for 500 credits to acc_9Kx2QwErTyUiOp.",
                details=MemberDetails("reference"),
            )
        },
    ),
    AdminError.AUDIT_RUNNING: ErrorNote(
        cause="An audit is running in the process that was asked.",
        remedy="Ask again when it has ended.",
    ),
    AdminError.INVALID_VALUE: ErrorNote(
        cause="A member or parameter has a value that it may not have.",
        remedy="Correct what the message names.",
        details=MemberDetails,
        refusals={
            "invalid_value": AdminRefusal(
                error=AdminError.INVALID_VALUE,
                message="The amount must be a whole number from 1 to 1000000000000000, not 0.",
                details=MemberDetails("credits"),
            )
        },
    ),
    AdminError.UNAVAILABLE: ErrorNote(
        cause="The books cannot be used for the moment, or too many requests wait for them.",
        remedy="Retry as Retry-After says.",
    ),
    AdminError.NOT_FOUND: PUBLIC_NOTES[Error.NOT_FOUND],
    AdminError.METHOD_NOT_ALLOWED: PUBLIC_NOTES[Error.METHOD_NOT_ALLOWED],
    AdminError.REQUEST_TIMEOUT: PUBLIC_NOTES[Error.REQUEST_TIMEOUT],
    AdminError.INPUT_TOO_LARGE: ErrorNote(
        cause="The body has more than 1 MiB.",
        remedy="Send less at once.",
    ),
    AdminError.UNSUPPORTED_MEDIA_TYPE: PUBLIC_NOTES[Error.UNSUPPORTED_MEDIA_TYPE],
    AdminError.HEADERS_TOO_LARGE: PUBLIC_NOTES[Error.HEADERS_TOO_LARGE],
    AdminError.INTERNAL_ERROR: PUBLIC_NOTES[Error.INTERNAL_ERROR],
}
