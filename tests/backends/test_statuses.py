"""Answers without a 2xx status: what each means, with every kind alike."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.backends.http_connection import HttpReply
from tarazu.backends.port import BackendError, Fault
from tarazu.backends.statuses import TRAPS, status_error

NOW_S = 1_790_000_000.0
"""Mon, 21 Sep 2026 14:13:20 GMT."""
CANARY = "canary-4b1d"


def error(status: int, body: object = None, retry_after: str | None = None) -> BackendError:
    """Make the error of an answer."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return status_error(HttpReply(status, content, retry_after), NOW_S)


@pytest.mark.parametrize(
    ("fault", "statuses"),
    [
        (Fault.KEY_REFUSED, [401, 402, 403]),
        (Fault.REQUEST_REFUSED, [400, 413, 422]),
        (Fault.BUSY, [429]),
        (
            Fault.STATUS,
            [
                100,
                300,
                301,
                302,
                304,
                307,
                308,
                404,
                405,
                408,
                409,
                410,
                415,
                418,
                425,
                451,
                500,
                501,
                502,
                503,
                504,
                529,
            ],
        ),
    ],
)
def test_a_status_says_who_is_at_fault(fault: Fault, statuses: list[int]) -> None:
    """The detail is the number, and nothing else."""
    for status in statuses:
        told = error(status, {"error": {"message": CANARY, "type": CANARY, "code": CANARY}})
        assert (told.fault, told.detail, told.retry_after_s) == (fault, str(status), None)


@pytest.mark.parametrize("status", [503, 529])
def test_a_server_that_says_when_to_come_back_is_busy(status: int) -> None:
    """Without that it is ill."""
    assert (error(status, retry_after="7").fault, error(status, retry_after="7").retry_after_s) == (Fault.BUSY, 7)
    assert error(status, retry_after="soon").fault is Fault.STATUS


@pytest.mark.parametrize("status", [400, 401, 404, 500, 502, 504])
def test_a_retry_after_with_another_status_says_nothing(status: int) -> None:
    """It makes nobody busy."""
    told = error(status, retry_after="7")
    assert (told.fault is not Fault.BUSY, told.retry_after_s) == (True, None)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("0", 0),
        ("7", 7),
        ("0.5", 0.5),
        ("999999999", 999_999_999),
        ("9999999999", None),
        ("Mon, 21 Sep 2026 14:13:50 GMT", 30),
        ("Mon, 21 Sep 2026 14:13:50 -0000", 30),
        ("Mon, 21 Sep 2026 17:43:50 +0330", 30),
        ("Monday, 21-Sep-26 14:13:50 GMT", 30),
        ("Mon, 21 Sep 2026 14:00:00 GMT", 0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799 - NOW_S),
        ("", None),
        ("-1", None),
        ("1e3", None),
        ("nan", None),
        ("inf", None),
        ("٧", None),
        ("9" * 400, None),
        ("soon", None),
        ("Mon, 99 Sep 2026 14:13:50 GMT", None),
    ],
)
def test_a_retry_after_is_seconds_or_a_date(header: str, seconds: float | None) -> None:
    """What is neither says nothing. How much of it is kept to is a matter of the pool."""
    assert error(429, retry_after=header).retry_after_s == seconds


@given(st.text(max_size=40))
def test_no_retry_after_breaks_the_reading(header: str) -> None:
    """Whatever a server writes there."""
    seconds = error(429, retry_after=header).retry_after_s
    assert seconds is None or 0 <= seconds < math.inf


def google(status: int, name: str, *details: dict[str, Any]) -> dict[str, Any]:
    """Write an error as Google does."""
    return {"error": {"code": status, "message": CANARY, "status": name, "details": list(details)}}


TOLD: list[tuple[str, int, object, Fault, str]] = [
    (
        "Gemini: a wrong key",
        400,
        google(400, "INVALID_ARGUMENT", {"@type": "ErrorInfo", "reason": "API_KEY_INVALID"}),
        Fault.KEY_REFUSED,
        "400 API_KEY_INVALID",
    ),
    (
        "Gemini: not in this country",
        400,
        google(400, "FAILED_PRECONDITION"),
        Fault.KEY_REFUSED,
        "400 FAILED_PRECONDITION",
    ),
    ("Gemini: a bad request", 400, google(400, "INVALID_ARGUMENT"), Fault.REQUEST_REFUSED, "400"),
    ("Gemini: in a list", 400, [google(400, "FAILED_PRECONDITION")], Fault.KEY_REFUSED, "400 FAILED_PRECONDITION"),
    (
        "OpenAI: not paid",
        429,
        {"error": {"message": CANARY, "type": "insufficient_quota", "param": None, "code": "insufficient_quota"}},
        Fault.KEY_REFUSED,
        "429 insufficient_quota",
    ),
    (
        "OpenAI: too many requests",
        429,
        {"error": {"message": CANARY, "type": "requests", "param": None, "code": "rate_limit_exceeded"}},
        Fault.BUSY,
        "429",
    ),
    (
        "OpenAI: a setting that the model does not take",
        400,
        {"error": {"message": CANARY, "type": "invalid_request_error", "code": "unsupported_parameter"}},
        Fault.REQUEST_REFUSED,
        "400 unsupported_parameter",
    ),
    (
        "OpenAI: too long",
        400,
        {"error": {"message": CANARY, "code": "context_length_exceeded"}},
        Fault.REQUEST_REFUSED,
        "400 context_length_exceeded",
    ),
    (
        "Azure: filtered",
        400,
        {
            "error": {
                "message": CANARY,
                "type": None,
                "param": "prompt",
                "code": "content_filter",
                "status": 400,
                "innererror": {"code": "ResponsibleAIPolicyViolation"},
            }
        },
        Fault.REFUSAL,
        "400 content_filter",
    ),
    (
        "OpenRouter: flagged",
        403,
        {"error": {"code": 403, "message": CANARY, "metadata": {"reasons": ["x"], "flagged_input": CANARY}}},
        Fault.REFUSAL,
        "403 flagged_input",
    ),
    ("OpenRouter: no credits", 402, {"error": {"code": 402, "message": CANARY}}, Fault.KEY_REFUSED, "402"),
    (
        "Anthropic: no credits",
        400,
        {
            "type": "error",
            "error": {
                "type": "invalid_request_error",
                "message": "Your credit balance is too low to access the Anthropic API.",
            },
        },
        Fault.KEY_REFUSED,
        "400 credit balance is too low",
    ),
    (
        "Anthropic: a setting that the model does not take",
        400,
        {"error": {"type": "invalid_request_error", "message": "`temperature` is deprecated for this model."}},
        Fault.REQUEST_REFUSED,
        "400 deprecated for this model",
    ),
    (
        "Anthropic: a bad request",
        400,
        {"type": "error", "error": {"type": "invalid_request_error", "message": CANARY}},
        Fault.REQUEST_REFUSED,
        "400",
    ),
    (
        "Anthropic: overloaded",
        529,
        {"type": "error", "error": {"type": "overloaded_error", "message": CANARY}},
        Fault.STATUS,
        "529",
    ),
    (
        "vLLM: a bad request",
        400,
        {"object": "error", "message": CANARY, "type": "BadRequestError", "code": 400},
        Fault.REQUEST_REFUSED,
        "400",
    ),
    (
        "llama.cpp: too long",
        400,
        {"error": {"code": 400, "message": CANARY, "type": "exceed_context_size_error", "n_ctx": 8192}},
        Fault.REQUEST_REFUSED,
        "400 exceed_context_size_error",
    ),
    (
        "a model that is not there, as a 400",
        400,
        {"error": {"message": CANARY, "code": "model_not_found"}},
        Fault.STATUS,
        "400 model_not_found",
    ),
]


@pytest.mark.parametrize(
    ("status", "body", "fault", "detail"), [case[1:] for case in TOLD], ids=[case[0] for case in TOLD]
)
def test_what_a_server_means_by_its_status(status: int, body: object, fault: Fault, detail: str) -> None:
    """Known words say more than the number; unknown ones, and messages, never come through."""
    told = error(status, body)
    assert (told.fault, told.detail) == (fault, detail)


def test_a_quoted_prompt_says_nothing() -> None:
    """A caller cannot make a backend look unpaid with words that its server repeats."""
    told = error(400, {"error": {"message": "Cannot read: Your credit balance is too low"}})
    assert (told.fault, told.detail) == (Fault.REQUEST_REFUSED, "400")


def test_words_count_only_for_client_errors() -> None:
    """A server that fails is at fault, whatever it quotes."""
    body = {"error": {"code": "content_filter"}}
    assert (error(500, body).fault, error(500, body).detail) == (Fault.STATUS, "500")


@pytest.mark.parametrize(
    ("delay", "seconds"),
    [
        ("58s", 58),
        ("45.837906927s", 45.837906927),
        ("99999s", 99_999),
        ("soon", None),
        (7, None),
        ("7", None),
    ],
)
def test_google_says_in_the_body_when_to_come_back(delay: object, seconds: float | None) -> None:
    """It sends no Retry-After."""
    body = google(429, "RESOURCE_EXHAUSTED", {"@type": "QuotaFailure"}, {"@type": "RetryInfo", "retryDelay": delay})
    told = error(429, body)
    assert (told.fault, told.retry_after_s) == (Fault.BUSY, pytest.approx(seconds) if seconds else None)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"[" * 100_000,
        b"\xff",
        b"[]",
        b"[null]",
        b'{"error": "no"}',
        b'{"error": {"code": {}, "type": [], "status": 5, "message": null, "details": {}, "metadata": []}}',
        b'{"error": {"details": [null, 5, {"reason": []}, {"retryDelay": {}}]}}',
    ],
)
def test_a_body_that_nobody_can_read_leaves_the_status(body: bytes) -> None:
    """The number says enough."""
    assert [(error(status, body).fault, error(status, body).detail) for status in (400, 429, 500)] == [
        (Fault.REQUEST_REFUSED, "400"),
        (Fault.BUSY, "429"),
        (Fault.STATUS, "500"),
    ]


@pytest.mark.parametrize("word", TRAPS)
def test_every_trap_is_sprung(word: str) -> None:
    """Wherever its server writes it."""
    bodies = [
        {"error": {"code": word}},
        {"error": {"details": [{"reason": word}]}},
        {"error": {"metadata": {word: ""}}},
        {"error": {"message": f"Your {word}."}},
    ]
    assert (TRAPS[word], f"400 {word}") in [(error(400, body).fault, error(400, body).detail) for body in bodies]
