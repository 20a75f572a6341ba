"""Read the Authorization header: rows 2 and 3 of the order of checks."""

import re

from tarazu.api.head import Head
from tarazu.domain.errors import Error, Refusal
from tarazu.domain.keys import PresentedKey, parse

_BEARER = re.compile(rb"(?i:bearer) +([!-~]+)")


def presented_key(head: Head) -> PresentedKey | Refusal:
    """Take the key out of a request's head, or refuse: missing, or malformed."""
    text = bearer_text(head)
    if text == "":
        return Refusal(error=Error.MISSING_API_KEY)
    return (text and parse(text)) or Refusal(error=Error.INVALID_API_KEY)


def bearer_text(head: Head) -> str | None:
    """Take what stands behind `Bearer`: empty where nothing was sent, None where the header is malformed."""
    if b"authorization" in head.repeated:
        return None
    value = head.values.get(b"authorization", b"").strip(b" \t")
    if not value:
        return ""
    match = _BEARER.fullmatch(value)
    return None if match is None else match[1].decode("ascii")
