"""What holds for every answer that says no, asserted in one place."""

import re
from typing import Any

from tests.support.service import Answer

OWN_CODES = {
    400: "invalid_request",
    404: "not_found",
    405: "method_not_allowed",
    408: "request_timeout",
    409: "idempotency_conflict",
    415: "unsupported_media_type",
    422: "idempotency_mismatch",
    431: "headers_too_large",
    500: "internal_error",
}
"""Those that decisions.md puts beside the specification's, by status."""
RATE_LIMIT_HEADERS = {"x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"}


def assert_domain_error(answer: Answer, status: int, code: str) -> Any:
    """Assert the object form with this status and code; answer with its details."""
    assert answer.status == status, answer
    _assert_headers(answer)
    assert list(answer.json) == ["error"]
    error = answer.json["error"]
    assert set(error) == {"code", "message", "details"}
    assert error["code"] == code
    assert isinstance(error["message"], str)
    assert error["message"].strip()
    assert isinstance(error["details"], dict)
    return error["details"]


def assert_own_error(answer: Answer, status: int) -> str:
    """Assert the code that stands beside the specification's for this status; answer with the message."""
    assert assert_domain_error(answer, status, OWN_CODES[status]) == {}
    message: str = answer.json["error"]["message"]
    return message


def rate_limit_headers(answer: Answer) -> set[str]:
    """Tell which of the headers of the minute windows an answer carries."""
    return {name for name in answer.headers if name.startswith("x-ratelimit")}


def _assert_headers(answer: Answer) -> None:
    headers = answer.headers
    assert headers["content-type"] == "application/json"
    assert re.fullmatch(r"req_[0-9A-Za-z]+", headers["x-request-id"])
    assert headers.get("www-authenticate") == ("Bearer" if answer.status == 401 else None)
    is_running = answer.json["error"]["code"] == "idempotency_conflict"
    assert ("retry-after" in headers) == (is_running or answer.status in {429, 503})
    assert re.fullmatch(r"[1-9][0-9]*", headers.get("retry-after", "1"))
    assert ("allow" in headers) == (answer.status == 405)
