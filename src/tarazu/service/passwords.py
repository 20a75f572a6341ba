"""Passwords: argon2id, in a thread of its own, one at a time, since each takes a core for a while and much memory."""

from enum import Enum
from functools import lru_cache
from importlib.resources import files
from unicodedata import normalize

from argon2 import PasswordHasher
from argon2.exceptions import VerifyMismatchError
from msgspec import Struct

from tarazu.domain.password_rules import PasswordFault, password_fault
from tarazu.service.fair_thread import FairThread

LENGTH_MIN = 10
LENGTH_MAX = 200
"""Characters of a new password."""
RAW_LENGTH_MAX = 4 * LENGTH_MAX
"""Characters before Unicode joins them, four into one at most. With more it is no password, and nothing is joined: that
would take the square of their number."""
WAITING_MAX = 16
"""In each room behind the one that is worked on; one more is refused, or one of the longest line."""
OF_LINE_MAX = 8
"""In a line."""
COMMON_PASSWORDS = "common_passwords.txt"
"""The commonest of at least LENGTH_MIN characters that break no other rule, the commonest first.

Out of the ten million passwords that Mark Burnett put into the public domain in 2015, by their frequency.
"""


class Room(Enum):
    """Who waits together for a password to be worked on. The rooms are served in turn, and in each the lines are."""

    KNOWN_OPERATORS = "known operators"
    """In browsers in which they have signed in before, and those that are signed in; a line for each."""
    KNOWN_HOLDERS = "known holders"
    """The same of holders."""
    INVITED = "invited"
    """Who follows an invitation; a line for each."""
    OPERATORS = "operators"
    """Others that try to sign in as operators; a line for each address."""
    HOLDERS = "holders"
    """Others that try to sign in as holders; a line for each address."""


class Place(Struct, frozen=True):
    """Where somebody waits: in which room, and in whose line there."""

    room: Room
    line: str


class PasswordsBusyError(Exception):
    """More wait than may wait; nothing was worked out."""


class Passwords:
    """Hashes and compares passwords for one process, off its event loop.

    A password is taken in Unicode's form NFKC, so that it is the same whatever keyboard it was typed on. The hasher's
    settings are the library's own but for the lanes, unless one with others is handed in: a hash in one lane leaves the
    other cores to the callers, and costs whoever guesses as much.
    """

    def __init__(self, hasher: PasswordHasher | None = None) -> None:
        self._hasher = hasher or PasswordHasher(parallelism=1)
        self._thread = FairThread("passwords", stopped=PasswordsBusyError)
        self._rooms = {
            room: self._thread.room(
                room.value,
                waiting_max=WAITING_MAX,
                of_line_max=OF_LINE_MAX,
                full=lambda: PasswordsBusyError("Too many passwords wait to be compared."),
            )
            for room in Room
        }

    async def hash(self, password: str, place: Place) -> str:
        """Make the hash of a password that may be one, as the books keep it.

        Raises:
            PasswordsBusyError: too many wait.
        """
        return await self._rooms[place.room].run(place.line, lambda: self._hasher.hash(_encoded(password)))

    async def matches(self, password: str, hash_: str | None, place: Place) -> bool:
        """Compare a password with a hash of the books; it takes as long where there is none.

        Raises:
            PasswordsBusyError: too many wait.
        """
        is_one = len(password) <= RAW_LENGTH_MAX
        encoded = _encoded(password if is_one else "")
        return await self._rooms[place.room].run(place.line, lambda: self._compare(encoded, hash_ if is_one else None))

    def close(self) -> None:
        """Begin nothing more; what runs ends."""
        self._thread.close()

    def _compare(self, password: bytes, hash_: str | None) -> bool:
        if hash_ is None:
            self._hasher.hash(password)
            return False
        try:
            return self._hasher.verify(hash_, password)
        except VerifyMismatchError:
            return False


def may_be_password(text: str) -> bool:
    """Tell whether a person may choose this: LENGTH_MIN to LENGTH_MAX characters of Unicode text."""
    if len(text) > RAW_LENGTH_MAX or any(map(_is_surrogate, text)):
        return False
    return LENGTH_MIN <= len(normalize("NFKC", text)) <= LENGTH_MAX


def fault_of(password: str, *own: str) -> PasswordFault | None:
    """Tell why a password of the right length may not be chosen; None: it may. `own`: email and name of who chooses."""
    return password_fault(password, own=own, is_common=_common().__contains__)


@lru_cache
def _common() -> frozenset[str]:
    return frozenset(files("tarazu.service").joinpath(COMMON_PASSWORDS).read_text("utf-8").splitlines())


def _is_surrogate(character: str) -> bool:
    return "\ud800" <= character <= "\udfff"


def _encoded(password: str) -> bytes:
    return normalize("NFKC", password).encode("utf-8", "surrogatepass")
