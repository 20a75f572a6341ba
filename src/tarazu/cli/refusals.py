"""Tell a caller what the API's errors mean, and what to do about each."""

from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from tarazu.cli.caller_key import KEY_ADVICE
from tarazu.cli.errors import CommandError
from tarazu.cli.output import printable
from tarazu.domain.errors import ExhaustedDetails, RateLimitDetails

DetailsT = TypeVar("DetailsT")


class Failure(Struct, frozen=True, kw_only=True):
    """One error of the API."""

    status: int
    code: str
    message: str
    details: Any = None
    retry_after_s: int | None = None


def refusal(failure: Failure) -> CommandError:
    """Put the failure in words: its code and message, then advice."""
    return CommandError(printable(f"{failure.code}: {failure.message}"), _advice(failure))


_ADVICE = {
    "missing_api_key": KEY_ADVICE,
    "invalid_api_key": "Check the key; the operator issues another with: tarazu key create ACCOUNT --name NAME",
    "upgrade_required": "The operator sets a plan with: tarazu account set ID --plan PLAN",
    "account_unavailable": "The operator sees why with: tarazu account show ID",
    "model_not_found": "In a conversation, /model lists the models of this key.",
    "input_too_large": "Send less; in a conversation, /new begins again without the history.",
    "upstream_error": "Try again in a moment; nothing was paid for this one.",
}


def _advice(failure: Failure) -> str | None:
    match failure.code:
        case "api_credits_exhausted":
            return _exhausted(_details(failure, ExhaustedDetails))
        case "rate_limit_exceeded":
            limits = _details(failure, RateLimitDetails)
            return _retry(failure) + (f" The limit is {limits.limit_per_minute} a minute." if limits else "")
        case "system_stopped":
            return _retry(failure)
        case code:
            return _ADVICE.get(code)


def _exhausted(details: ExhaustedDetails | None) -> str:
    if details is None:
        return "The operator adds credits with: tarazu credit add ACCOUNT AMOUNT --reference REF"
    return printable(
        f"The request costs {details.cost:,} credits; {details.used:,} of {details.limit:,} are used in "
        f"{details.period}, and the balance is {details.api_credit_balance:,}."
    )


def _retry(failure: Failure) -> str:
    return "Try again later." if failure.retry_after_s is None else f"Try again in {failure.retry_after_s:,} s."


def _details(failure: Failure, kind: type[DetailsT]) -> DetailsT | None:
    try:
        return msgspec.convert(failure.details, kind)
    except msgspec.ValidationError:
        return None
