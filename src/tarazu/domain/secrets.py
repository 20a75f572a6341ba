"""Secrets of people: what the cookie of a session and the link of an invitation hold, 43 base62 characters.

They are found by their digest, the only thing of them that is ever stored.
"""

import re
from hashlib import sha256

from tarazu.domain.keys import base62

SECRET_LENGTH = 43
"""62**43 possibilities: as many as SHA-256 has values."""
ENTROPY_BYTES = 48
"""Random bytes for one secret, more than it needs, so that its digits are even to within 2**-127."""

_SHAPE = re.compile(rf"[0-9A-Za-z]{{{SECRET_LENGTH}}}")


def secret_from(entropy: bytes) -> str:
    """Make a secret from random bytes (at least `ENTROPY_BYTES`)."""
    assert len(entropy) >= ENTROPY_BYTES, "too few random bytes"
    return base62(int.from_bytes(entropy, "big"), SECRET_LENGTH)


def digest_of(secret: str) -> bytes | None:
    """Tell by what a secret is found, or None for a text that is none."""
    return sha256(secret.encode("ascii")).digest() if _SHAPE.fullmatch(secret) else None
