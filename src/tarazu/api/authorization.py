"""Read the Authorization header: rows 2 and 3 of the order of checks."""

import re
from collections.abc import Iterable

from tarazu.domain.errors import Error, Refusal
from tarazu.domain.keys import PresentedKey, parse

_BEARER = re.compile(rb"(?i:bearer) +([!-~]+)")


def presented_key(headers: Iterable[tuple[bytes, bytes]]) -> PresentedKey | Refusal:
    """Take the key out of a request's headers (names in lower case), or refuse: missing, or malformed."""
    text = bearer_text(headers)
    if text == "":
        return Refusal(error=Error.MISSING_API_KEY)
    return (text and parse(text)) or Refusal(error=Error.INVALID_API_KEY)


def bearer_text(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """Take what stands behind `Bearer`: empty where nothing was sent, None where the header is malformed."""
    values = [value.strip(b" \t") for name, value in headers if name == b"authorization"]
    if values in ([], [b""]):
        return ""
    match = _BEARER.fullmatch(values[0])
    return match[1].decode("ascii") if match is not None and len(values) == 1 else None
