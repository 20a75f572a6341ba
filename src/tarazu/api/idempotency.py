"""Read the Idempotency-Key header of a chat request."""

import re

from tarazu.api.head import Head
from tarazu.domain.errors import Error, Refusal
from tarazu.domain.idempotency import KEY_CHARACTERS_MAX, Idempotency, idempotency_of

_KEY = re.compile(rb"[ -~]{1,%d}" % KEY_CHARACTERS_MAX)


def read_idempotency(head: Head, body: bytes) -> Idempotency | Refusal | None:
    """Take the key out of a request's head, or refuse its form; None without the header."""
    if b"idempotency-key" not in head.values:
        return None
    value = head.values[b"idempotency-key"].strip(b" \t")
    if b"idempotency-key" in head.repeated or not _KEY.fullmatch(value):
        return Refusal(
            error=Error.INVALID_REQUEST,
            message=f"Send one Idempotency-Key, of 1 to {KEY_CHARACTERS_MAX} printable ASCII characters.",
        )
    return idempotency_of(value.decode("ascii"), body)
