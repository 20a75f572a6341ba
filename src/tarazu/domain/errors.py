"""Every way in which the service says no, and the one table that gives each its status, code and message."""

from enum import Enum
from typing import Annotated

from msgspec import Meta, Struct


class ErrorKind(Struct, frozen=True):
    """One row of the table."""

    status: int
    code: str
    message: str


class Error(Enum):
    """The table: the specification's codes first, then those that decisions.md puts beside them."""

    STREAMING_NOT_SUPPORTED = ErrorKind(
        400,
        "streaming_not_supported",
        "Streaming is not available here: turn it off in your client, or send stream: false.",
    )
    MISSING_API_KEY = ErrorKind(
        401, "missing_api_key", "No API key was sent. Add the header 'Authorization: Bearer <API_KEY>'."
    )
    INVALID_API_KEY = ErrorKind(
        401, "invalid_api_key", "The API key is malformed, unknown, revoked or expired. Check or replace it."
    )
    UPGRADE_REQUIRED = ErrorKind(
        402, "upgrade_required", "The account has neither a plan nor a balance. Get a plan or API credit."
    )
    API_CREDITS_EXHAUSTED = ErrorKind(
        402, "api_credits_exhausted", "Quota and balance do not cover this request. Check usage and top up."
    )
    ACCOUNT_UNAVAILABLE = ErrorKind(
        403, "account_unavailable", "The account is unverified, inactive or blocked. Check its status."
    )
    MODEL_NOT_FOUND = ErrorKind(
        404, "model_not_found", "There is no such model for this key. Pick one from GET /models."
    )
    INPUT_TOO_LARGE = ErrorKind(
        413,
        "input_too_large",
        # LiteLLM, and aider with it, look for these words, and then do not ask again.
        "This prompt is too long: it would exceed context limits. Send at most 24,000 characters, in at most 512 "
        "messages and 1 MiB; begin a new conversation, or leave files out.",
    )
    MESSAGES_REQUIRED = ErrorKind(
        422,
        "messages_required",
        "No message with a text has arrived. Send messages whose content is a text, or text parts alone; or one of "
        "prompt, message and input.",
    )
    RATE_LIMIT_EXCEEDED = ErrorKind(
        429,
        "rate_limit_exceeded",
        "Too many requests this minute. Try again in the next one: Retry-After says in how many seconds.",
    )
    UPSTREAM_ERROR = ErrorKind(
        502, "upstream_error", "The model gave no valid reply; no credits were taken. Retry a few times."
    )
    SYSTEM_STOPPED = ErrorKind(
        503,
        "system_stopped",
        "The service takes no requests now. Try again later: Retry-After says in how many seconds.",
    )

    INVALID_REQUEST = ErrorKind(400, "invalid_request", "The request is not what this address takes.")
    NOT_FOUND = ErrorKind(
        404,
        "not_found",
        "There is nothing at this path. The address of the API ends with /api/v1: check the base address. It has "
        "POST /chat/completions, GET /models and GET /usage; no /responses, /completions or /embeddings: tell your "
        "client to use chat completions.",
    )
    METHOD_NOT_ALLOWED = ErrorKind(
        405, "method_not_allowed", "This path does not take this method. See the Allow header."
    )
    REQUEST_TIMEOUT = ErrorKind(408, "request_timeout", "The request body did not arrive in time. Send it at once.")
    IDEMPOTENCY_CONFLICT = ErrorKind(
        409,
        "idempotency_conflict",
        "A request with this Idempotency-Key is still running. Send it again, to get its reply: Retry-After says in "
        "how many seconds.",
    )
    UNSUPPORTED_MEDIA_TYPE = ErrorKind(
        415,
        "unsupported_media_type",
        "Send the body as Content-Type: application/json, in UTF-8, without Content-Encoding.",
    )
    IDEMPOTENCY_MISMATCH = ErrorKind(
        422, "idempotency_mismatch", "This Idempotency-Key was sent before with another body. Send another key."
    )
    HEADERS_TOO_LARGE = ErrorKind(
        431, "headers_too_large", "The head is too large. Send at most 8 KiB in each header, and 32 KiB in all."
    )
    INTERNAL_ERROR = ErrorKind(
        500, "internal_error", "Something went wrong on our side. Tell the operator the X-Request-Id."
    )


class NoDetails(Struct, frozen=True):
    """The empty object that `details` is when there is nothing to add."""


class ExhaustedDetails(Struct, frozen=True, kw_only=True):
    """`details` of api_credits_exhausted; all but `period` are in credits."""

    period: Annotated[str, Meta(description="Monthly period, YYYY-MM.")]
    used: Annotated[int, Meta(description="Credits of the quota consumed in the period.")]
    limit: Annotated[int, Meta(description="Monthly quota of the plan; 0 without a plan.")]
    cost: Annotated[int, Meta(description="Credits the request needed.")]
    api_credit_balance: Annotated[int, Meta(description="Pay-as-you-go balance, in credits.")]


class RateLimitDetails(Struct, frozen=True, kw_only=True):
    """`details` of rate_limit_exceeded: `scope` is `account` or `key`, `resets_at` an ISO 8601 time."""

    scope: Annotated[str, Meta(description="Whose limit it is: `account` or `key`.")]
    limit_per_minute: Annotated[int, Meta(description="Maximum requests in one minute.")]
    resets_at: Annotated[str, Meta(description="ISO 8601 time at which the window resets.")]


class Sender(Struct, frozen=True):
    """Whose key was presented."""

    account_id: str
    key_id: str


PARAMETERS_TOLD_MAX = 16
"""Names of members that are not acted on, in a header."""


class PassedOver(Struct, frozen=True):
    """What of a request is not acted on: how many of its messages are not valid, and members that nobody reads."""

    messages: int = 0
    parameters: tuple[str, ...] = ()

    def and_parameter(self, name: str) -> "PassedOver":
        """Add a member that is not acted on; as many are told as are told of others."""
        return PassedOver(self.messages, tuple(sorted({*self.parameters, name}))[:PARAMETERS_TOLD_MAX])


NOTHING = PassedOver()


class Refusal(Struct, frozen=True, kw_only=True):
    """One request refused. `message` overrides the table's; `retry_after_s` is what Retry-After says.

    `sender` is whose key was presented, in refusals by rows 4 to 7 and 14 to 16, where the books have that key; it is
    for the log and the history.
    """

    error: Error
    message: str | None = None
    details: NoDetails | ExhaustedDetails | RateLimitDetails = NoDetails()
    retry_after_s: int | None = None
    sender: Sender | None = None
    passed_over: PassedOver = NOTHING

    @property
    def kind(self) -> ErrorKind:
        """The row of the table."""
        return self.error.value


class RefusedError(Exception):
    """Carries a refusal to where it is answered."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.error.name)
        self.refusal = refusal
