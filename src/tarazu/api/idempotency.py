"""Read the Idempotency-Key header of a chat request."""

import re
from collections.abc import Iterable

from tarazu.domain.errors import Error, Refusal
from tarazu.domain.idempotency import KEY_CHARACTERS_MAX, Idempotency, idempotency_of

_KEY = re.compile(rb"[ -~]{1,%d}" % KEY_CHARACTERS_MAX)


def read_idempotency(headers: Iterable[tuple[bytes, bytes]], body: bytes) -> Idempotency | Refusal | None:
    """Take the key out of a request's headers (names in lower case), or refuse its form; None without the header."""
    values = [value.strip(b" \t") for name, value in headers if name == b"idempotency-key"]
    if not values:
        return None
    if len(values) > 1 or not _KEY.fullmatch(values[0]):
        return Refusal(
            error=Error.INVALID_REQUEST,
            message=f"Send one Idempotency-Key, of 1 to {KEY_CHARACTERS_MAX} printable ASCII characters.",
        )
    return idempotency_of(values[0].decode("ascii"), body)
