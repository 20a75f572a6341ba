"""What is asked of the words and numbers that operators give."""

import re

from msgspec import Struct

from tarazu.domain.calendar import MILLISECONDS_PER_SECOND
from tarazu.service.provisioning_errors import ProvisioningError

NAME_LENGTH_MAX = 200
HISTORY_LENGTH = 50
HISTORY_LENGTH_MAX = 1_000
"""Changes of a balance, accounts, keys or acts on one page: unless another number is asked for, and at most."""
LIMIT_PER_MINUTE_MAX = 10**9
EXPIRY_S_MAX = 36_500 * 86_400
"""A hundred years: what lasts longer is meant to last for ever."""

JOINERS = "\u200c\u200d"
"""Zero-width characters inside words of Persian and other scripts, which Python counts as unprintable."""

UNSEEN = JOINERS + "\u115f\u1160\u3164\uffa0\u2800"
"""With them fillers of Korean and the blank of Braille, which Python counts as printable."""

_EMAIL = re.compile(r"[^@\s]+@[^@\s]+")


class Unchanged(Struct, frozen=True):
    """Stands for what an act leaves as it is."""


UNCHANGED = Unchanged()


def checked_text(what: str, text: str, length_max: int) -> str:
    """Take the white space around a text off, which counts for its length.

    Raises:
        ProvisioningError: nothing that is seen is left, it is too long, or it has characters that cannot be printed.
    """
    trimmed = text[: length_max + 1].strip()
    printable = "".join(character for character in trimmed if character not in JOINERS).isprintable()
    is_seen = any(character not in UNSEEN and not character.isspace() for character in trimmed)
    if not trimmed:
        raise ProvisioningError("The {what} is missing. Write one.", member=what, what=what)
    if not is_seen or len(text) > length_max or not printable:
        raise ProvisioningError(
            "The {what} must be 1 to {length_max} printable characters.", member=what, what=what, length_max=length_max
        )
    return trimmed


def checked_email(email: str) -> str:
    """Write an address in its one form, lower case.

    Raises:
        ProvisioningError: it is none.
    """
    trimmed = email[: NAME_LENGTH_MAX + 1].strip().lower()
    if (
        max(len(email), len(trimmed)) > NAME_LENGTH_MAX
        or _EMAIL.fullmatch(trimmed) is None
        or not trimmed.isprintable()
    ):
        raise ProvisioningError(
            "{email!r} is no email address. Write one as in ada@example.com.", member="email", email=email
        )
    return trimmed


def checked_length(length: int) -> int:
    """Let the length of a page of a history pass.

    Raises:
        ProvisioningError: it is out of bounds.
    """
    if not 1 <= length <= HISTORY_LENGTH_MAX:
        raise ProvisioningError(
            "The limit must be 1 to {most}, not {length}.", member="limit", most=HISTORY_LENGTH_MAX, length=length
        )
    return length


def checked_count(what: str, number: int | None, *, member: str, least: int = 1, most: int) -> int | None:
    """Let a number pass, or None.

    Raises:
        ProvisioningError: it is out of bounds.
    """
    if number is None or least <= number <= most:
        return number
    if number < least:
        raise ProvisioningError(
            "The {what} must be at least {least}, not {number}.", member=member, what=what, least=least, number=number
        )
    raise ProvisioningError(
        "The {what} must be at most {most}, not {number}.", member=member, what=what, most=most, number=number
    )


def checked_expiry(now_ms: int, lasts_s: int | None) -> int | None:
    """Tell when something ends that lasts so long; None: never.

    Raises:
        ProvisioningError: it is below 1, or above EXPIRY_S_MAX.
    """
    checked_count("expiry", lasts_s, member="expires_in_s", most=EXPIRY_S_MAX)
    return None if lasts_s is None else now_ms + lasts_s * MILLISECONDS_PER_SECOND
