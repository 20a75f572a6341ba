"""Keys: a prefix, 12 characters public id, 32 characters secret, 6 characters checksum, all base62.

Callers have API keys, `trz_`, and programs of the operator have admin tokens, `tra_`; neither passes for the other. The
checksum lets a mistyped key be refused without a look-up. Only a digest of the secret is ever stored.
"""

import re
from functools import lru_cache
from hashlib import sha256
from hmac import compare_digest
from zlib import crc32

from msgspec import Struct

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
PREFIX_LENGTH = 4
PUBLIC_ID_LENGTH = 12
SECRET_LENGTH = 32
CHECKSUM_LENGTH = 6
KEY_LENGTH = PREFIX_LENGTH + PUBLIC_ID_LENGTH + SECRET_LENGTH + CHECKSUM_LENGTH
ENTROPY_BYTES = 48
"""Random bytes for one key: 62**44 possibilities out of 2**384, so the digits are even to within 2**-121."""

PARSED_MAX = 4_096
"""Keys that a process need not take apart again; some 2 MB."""

_DIGITS = re.compile(rf"[0-9A-Za-z]{{{KEY_LENGTH - PREFIX_LENGTH}}}")
_SECRET_START = PREFIX_LENGTH + PUBLIC_ID_LENGTH
_CHECKSUM_START = _SECRET_START + SECRET_LENGTH


class KeyKind(Struct, frozen=True):
    """What the keys of one kind begin with, and what their ids begin with; both have PREFIX_LENGTH characters."""

    prefix: str
    id_prefix: str


API_KEY = KeyKind("trz_", "key_")
ADMIN_TOKEN = KeyKind("tra_", "tok_")


class MintedKey(Struct, frozen=True):
    """A new key. `text` is the whole key, to be shown once and never stored; `digest` is what the books keep."""

    id: str
    text: str
    digest: bytes

    def __repr__(self) -> str:
        """Name the key without its secret."""
        return f"MintedKey({self.id})"


class PresentedKey(Struct, frozen=True):
    """A well-formed key as a caller sent it: `id` to look up, `digest` to compare. Not yet known to be good."""

    id: str
    digest: bytes

    def matches(self, digest: bytes) -> bool:
        """Compare with the digest in the books, in a time that tells nothing about either."""
        return compare_digest(self.digest, digest)


def mint(entropy: bytes, kind: KeyKind = API_KEY) -> MintedKey:
    """Make a key from random bytes (at least `ENTROPY_BYTES`), the same key from the same bytes."""
    if len(entropy) < ENTROPY_BYTES:
        msg = f"a key needs {ENTROPY_BYTES} random bytes, not {len(entropy)}"
        raise ValueError(msg)
    body = base62(int.from_bytes(entropy, "big"), PUBLIC_ID_LENGTH + SECRET_LENGTH)
    text = kind.prefix + body + _checksum(kind.prefix + body)
    return MintedKey(kind.id_prefix + body[:PUBLIC_ID_LENGTH], text, _digest(body[PUBLIC_ID_LENGTH:]))


def parse(text: str, kind: KeyKind = API_KEY) -> PresentedKey | None:
    """Take a key apart, or answer None when its kind, its shape or its checksum is wrong (decisions, Keys)."""
    if not text.startswith(kind.prefix) or _DIGITS.fullmatch(text, PREFIX_LENGTH) is None:
        return None
    return _taken_apart(text, kind)


@lru_cache(PARSED_MAX)
def _taken_apart(text: str, kind: KeyKind) -> PresentedKey | None:
    """Do so for a text of a key's shape: what anybody may send is not kept, however long it is."""
    if _checksum(text[:_CHECKSUM_START]) != text[_CHECKSUM_START:]:
        return None
    return PresentedKey(
        kind.id_prefix + text[PREFIX_LENGTH:_SECRET_START], _digest(text[_SECRET_START:_CHECKSUM_START])
    )


def base62(number: int, length: int) -> str:
    """Write the last `length` base62 digits of a number."""
    digits = []
    for _ in range(length):
        number, digit = divmod(number, len(ALPHABET))
        digits.append(ALPHABET[digit])
    return "".join(reversed(digits))


def _checksum(text: str) -> str:
    return base62(crc32(text.encode("ascii")), CHECKSUM_LENGTH)


def _digest(secret: str) -> bytes:
    return sha256(secret.encode("ascii")).digest()
