"""What a browser keeps between a form and the page that answers it, so that every form is followed by a redirect.

It is kept in a cookie that goes to that one page alone, for KEPT_S. The address names it, so that the page shows it as
often as it is loaded, in either language, and not when it is opened anew. The books have nothing of it, also no secret
that is shown once. What is shown to somebody who is signed in holds for that page in that session only: nobody can have
another one's secret shown there.
"""

import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from enum import StrEnum
from hmac import compare_digest, digest

import msgspec
from msgspec import Struct

from tarazu.panel.refusals import Refused

KEPT_S = 600
KEPT = "kept"
"""The parameter of an address that names what is kept for it."""
COOKIE_CHARACTERS_MAX = 3_000
"""A browser keeps 4,096 with the name, and all cookies of a request share a header that is bounded."""
PACKED_BYTES_MAX = 32 * 1024
NEVER_KEPT = frozenset({"csrf", "password", "old", "new", "code", "confirm_password", "confirm_code"})
"""Fields that are written anew each time: passwords, codes, and what belongs to the page."""
_MAC_BYTES = 32


class Kind(StrEnum):
    """What something is kept for."""

    NOTHING = ""
    DONE = "done"
    """To say what has been done."""
    TOLD = "told"
    """To say what has been done, with its figures, which no other session is told."""
    UNSENT = "unsent"
    """A form that nobody could take: it is offered again, as it was written."""
    REFUSED = "refused"
    """A form that was refused, and why."""
    CONFIRM = "confirm"
    """A form that is taken when the password has been given once more."""
    SHOWN = "shown"
    """Something that is shown this once."""


OPEN_KINDS = frozenset({Kind.DONE, Kind.UNSENT})
"""These pass from one session to the next: they tell nothing that is not written on the page, and do nothing."""


class Kept(Struct, frozen=True, kw_only=True):
    """The fields of a form, or what a page is to show, by name."""

    id: str = ""
    kind: Kind = Kind.NOTHING
    fields: tuple[tuple[str, str], ...] = ()
    refused: Refused | None = None


class NotTakenError(Exception):
    """A form was not taken, for this reason; its page offers it again, or asks for the password before it is taken."""

    def __init__(self, refused: Refused | None, *, kind: Kind = Kind.REFUSED) -> None:
        super().__init__("a form was not taken")
        self.refused = refused
        self.kind = kind


def seal(kept: Kept, path: str, secret: str) -> str | None:
    """Write it for the cookie of the page at `path`, for the session with this secret; None where it is too large."""
    packed = msgspec.msgpack.encode(kept)
    if len(packed) > PACKED_BYTES_MAX:
        return None
    packed = zlib.compress(packed)
    text = urlsafe_b64encode(_mac(packed, path, "" if kept.kind in OPEN_KINDS else secret) + packed).decode()
    return text if len(text) <= COOKIE_CHARACTERS_MAX else None


def unseal(text: str, path: str, secret: str) -> Kept:
    """Read it; nothing, where it is not for this page, or was kept in another session."""
    try:
        raw = urlsafe_b64decode(text)
        mac, packed = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
        is_of_session = compare_digest(mac, _mac(packed, path, secret))
        if not is_of_session and not compare_digest(mac, _mac(packed, path, "")):
            return Kept()
        unpacked = zlib.decompressobj().decompress(packed, PACKED_BYTES_MAX)
        kept = msgspec.msgpack.decode(unpacked, type=Kept)
    except (ValueError, zlib.error):  # no base64, or kept by another release
        return Kept()
    return kept if is_of_session or kept.kind in OPEN_KINDS else Kept()


def to_keep(fields: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """Leave out of a form what is never kept."""
    return tuple((name, value) for name, value in fields if name not in NEVER_KEPT)


def _mac(packed: bytes, path: str, secret: str) -> bytes:
    return digest(secret.encode(), b"\0".join((b"kept", path.encode(), packed)), "sha256")
