"""Read the Authorization header: rows 2 and 3 of the order of checks."""

import re
from collections.abc import Iterable

from tarazu.domain.errors import Error, Refusal
from tarazu.domain.keys import PresentedKey, parse

_BEARER = re.compile(rb"(?i:bearer) +([!-~]+)")


def presented_key(headers: Iterable[tuple[bytes, bytes]]) -> PresentedKey | Refusal:
    """Take the key out of a request's headers (names in lower case), or refuse: missing, or malformed."""
    values = [value.strip(b" \t") for name, value in headers if name == b"authorization"]
    if values in ([], [b""]):
        return Refusal(error=Error.MISSING_API_KEY)
    match = _BEARER.fullmatch(values[0])
    key = parse(match[1].decode("ascii")) if match is not None and len(values) == 1 else None
    return key or Refusal(error=Error.INVALID_API_KEY)
