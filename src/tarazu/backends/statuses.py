"""Tell what an answer without a 2xx status means; the same for all kinds.

The status decides, but for the words in TRAPS: there the servers use a status for something else than others do.
"""

import re
from collections.abc import Iterator
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

from tarazu.backends.http_connection import HttpReply
from tarazu.backends.port import BackendError, Fault

FAULTS = {
    400: Fault.REQUEST_REFUSED,
    401: Fault.KEY_REFUSED,
    402: Fault.KEY_REFUSED,
    403: Fault.KEY_REFUSED,
    413: Fault.REQUEST_REFUSED,
    422: Fault.REQUEST_REFUSED,
    429: Fault.BUSY,
}
"""All others are Fault.STATUS."""
BUSY_IF_IT_SAYS_WHEN = frozenset({503, 529})
CLIENT_ERRORS = range(400, 500)

TRAPS = {
    "API_KEY_INVALID": Fault.KEY_REFUSED,  # Gemini, 400
    "FAILED_PRECONDITION": Fault.KEY_REFUSED,  # Gemini, 400: no billing, or not in this country
    "insufficient_quota": Fault.KEY_REFUSED,  # OpenAI, 429: the operator has not paid, and waiting does not help
    "billing_hard_limit_reached": Fault.KEY_REFUSED,  # OpenAI, 400 and 429
    "billing_not_active": Fault.KEY_REFUSED,  # OpenAI, 429
    "billing_error": Fault.KEY_REFUSED,  # Anthropic
    "credit balance is too low": Fault.KEY_REFUSED,  # Anthropic, 400
    "content_filter": Fault.REFUSAL,  # Azure OpenAI, 400
    "content_policy_violation": Fault.REFUSAL,  # OpenAI, 400
    "invalid_prompt": Fault.REFUSAL,  # OpenAI's reasoning models, 400
    "flagged_input": Fault.REFUSAL,  # OpenRouter, 403
    "context_length_exceeded": Fault.REQUEST_REFUSED,  # OpenAI and many others, 400
    "exceed_context_size_error": Fault.REQUEST_REFUSED,  # llama.cpp, 400
    "unsupported_parameter": Fault.REQUEST_REFUSED,  # OpenAI, 400: wants `omit` or `rename` in the configuration
    "unsupported_value": Fault.REQUEST_REFUSED,  # as above
    "deprecated for this model": Fault.REQUEST_REFUSED,  # Anthropic, 400: wants `omit`
    "Extra inputs are not permitted": Fault.REQUEST_REFUSED,  # Anthropic, 400: as above
    "model_not_found": Fault.STATUS,  # OpenAI, 404; elsewhere 400
}
"""Words by which a server says more than its status. They go into the log; none of its other words does."""

_PHRASE = re.compile(
    r"(?:Your |`\w+` is |\w+: )"
    r"(?P<phrase>credit balance is too low|deprecated for this model|Extra inputs are not permitted)"
)
"""How a message begins that says what no code does. Further on in it a server may quote what it was sent."""
_SECONDS = re.compile(r"\d{1,9}(?:\.\d{1,9})?", re.ASCII)
_DURATION = re.compile(r"(?P<seconds>\d{1,9}(?:\.\d{1,9})?)s", re.ASCII)


def status_error(reply: HttpReply, now_s: float) -> BackendError:
    """Make the error of an answer; `now_s` is the time, in seconds of the epoch, that a Retry-After may count to."""
    status = reply.status
    error = _error(reply.body)
    retry_after_s = _retry_after_s(reply.retry_after, now_s)
    if retry_after_s is None:
        retry_after_s = _retry_delay_s(error)
    if status in CLIENT_ERRORS:
        said = set(_words(error))
        for word, fault in TRAPS.items():
            if word in said:
                return BackendError(fault, f"{status} {word}")
    fault = FAULTS.get(status, Fault.STATUS)
    if status in BUSY_IF_IT_SAYS_WHEN and retry_after_s is not None:
        fault = Fault.BUSY
    return BackendError(fault, str(status), retry_after_s=retry_after_s if fault is Fault.BUSY else None)


def _error(body: bytes) -> dict[str, Any]:
    """Find the object that tells about the error: `error`, or the whole body; Google may put it into a list."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return {}
    if isinstance(value, list) and value:
        value = value[0]
    if isinstance(value, dict) and isinstance(value.get("error"), dict):
        value = value["error"]
    return value if isinstance(value, dict) else {}


def _words(error: dict[str, Any]) -> Iterator[str]:
    """List what may stand in TRAPS."""
    said = [error.get("code"), error.get("type"), error.get("status")]
    said += [detail.get("reason") for detail in _details(error)]
    yield from (word for word in said if isinstance(word, str))
    if isinstance(metadata := error.get("metadata"), dict):
        yield from metadata
    if isinstance(message := error.get("message"), str) and (begins := _PHRASE.match(message)):
        yield begins["phrase"]


def _retry_after_s(header: str | None, now_s: float) -> float | None:
    """Read a Retry-After, seconds or a date; None when it is neither."""
    if header is None:
        return None
    if _SECONDS.fullmatch(header):
        return float(header)
    try:
        then = parsedate_to_datetime(header)
        return max((then if then.tzinfo else then.replace(tzinfo=UTC)).timestamp() - now_s, 0.0)
    except (ValueError, OverflowError):
        return None


def _retry_delay_s(error: dict[str, Any]) -> float | None:
    """Read Google's own form, which stands in the body and takes the place of a Retry-After."""
    for detail in _details(error):
        delay = detail.get("retryDelay")
        if isinstance(delay, str) and (duration := _DURATION.fullmatch(delay)):
            return float(duration["seconds"])
    return None


def _details(error: dict[str, Any]) -> Iterator[dict[str, Any]]:
    details = error.get("details")
    return (detail for detail in details if isinstance(detail, dict)) if isinstance(details, list) else iter(())
