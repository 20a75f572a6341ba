"""The one table of errors: the specification's codes and statuses, and those that decisions.md puts beside them."""

import msgspec
import pytest

from tarazu.domain.errors import Error, ExhaustedDetails, NoDetails, RateLimitDetails, Refusal, RefusedError

SPECIFICATION = {
    "streaming_not_supported": 400,
    "missing_api_key": 401,
    "invalid_api_key": 401,
    "upgrade_required": 402,
    "api_credits_exhausted": 402,
    "account_unavailable": 403,
    "model_not_found": 404,
    "input_too_large": 413,
    "messages_required": 422,
    "rate_limit_exceeded": 429,
    "upstream_error": 502,
    "system_stopped": 503,
}
"""Section Codes of the specification."""


BESIDE_IT = {
    "invalid_request": 400,
    "not_found": 404,
    "method_not_allowed": 405,
    "request_timeout": 408,
    "idempotency_conflict": 409,
    "unsupported_media_type": 415,
    "idempotency_mismatch": 422,
    "headers_too_large": 431,
    "internal_error": 500,
}
"""Section Errors of the decisions."""


def test_the_errors_are_the_specifications_and_those_beside_them() -> None:
    """Every code, its status, and no code more."""
    assert {error.value.code: error.value.status for error in Error} == SPECIFICATION | BESIDE_IT


def test_no_code_stands_twice() -> None:
    """An enumeration would silently merge two equal rows."""
    assert len(list(Error)) == len(SPECIFICATION) + len(BESIDE_IT)
    assert len(Error.__members__) == len(list(Error))


def test_an_error_is_named_like_its_code() -> None:
    """What is grepped for in the code is what a caller sees."""
    assert {error.name.lower() for error in Error} == set(SPECIFICATION | BESIDE_IT)


@pytest.mark.parametrize("error", Error)
def test_every_message_says_something(error: Error) -> None:
    """A sentence for a person, in the table's own words."""
    assert error.value.message.endswith(".")
    assert len(error.value.message) > 20


@pytest.mark.parametrize("error", [error for error in Error if error.value.status in (409, 429, 503)])
def test_a_message_of_what_passes_says_so_before_it_names_a_header(error: Error) -> None:
    """Who reads it in a chat window sees no headers: it says to ask again, and then where a program finds how soon."""
    again, header = error.value.message.find(" again"), error.value.message.find("Retry-After")
    assert 0 < again < header


def test_details_are_an_empty_object_unless_there_is_something_to_add() -> None:
    """Decisions, Errors: `details` is always an object."""
    assert msgspec.json.encode(Refusal(error=Error.MODEL_NOT_FOUND).details) == b"{}"
    assert Refusal(error=Error.MODEL_NOT_FOUND).details == NoDetails()


def test_details_of_api_credits_exhausted_are_the_specifications() -> None:
    """Section Envelope: exactly these members."""
    details = ExhaustedDetails(period="2026-02", used=1, limit=2, cost=3, api_credit_balance=4)
    assert msgspec.to_builtins(details) == {
        "period": "2026-02",
        "used": 1,
        "limit": 2,
        "cost": 3,
        "api_credit_balance": 4,
    }


def test_details_of_rate_limit_exceeded_are_those_of_the_decisions() -> None:
    """Section Rate limit: scope, limit_per_minute, resets_at."""
    details = RateLimitDetails(scope="key", limit_per_minute=3, resets_at="2026-02-10T12:01:00Z")
    assert set(msgspec.to_builtins(details)) == {"scope", "limit_per_minute", "resets_at"}


def test_a_raised_refusal_names_its_error_only() -> None:
    """What reaches a log by way of the exception's text is the error's name."""
    raised = RefusedError(Refusal(error=Error.MODEL_NOT_FOUND, message="asked for my-secret-model"))
    assert str(raised) == "MODEL_NOT_FOUND"
    assert raised.refusal.error is Error.MODEL_NOT_FOUND
