"""Passwords: argon2id, in a thread of its own, one at a time, since each takes a core for a while and much memory."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar
from unicodedata import normalize

from argon2 import PasswordHasher
from argon2.exceptions import VerifyMismatchError

LENGTH_MIN = 10
LENGTH_MAX = 200
"""Characters of a new password."""
WAITING_MAX = 8
"""In line behind the one that is worked on; one more is refused."""

T = TypeVar("T")


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
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="passwords")
        self._room = threading.BoundedSemaphore(1 + WAITING_MAX)

    async def hash(self, password: str) -> str:
        """Make the hash of a password that may be one, as the books keep it.

        Raises:
            PasswordsBusyError: too many wait.
        """
        return await self._run(lambda: self._hasher.hash(_encoded(password)))

    async def matches(self, password: str, hash_: str | None) -> bool:
        """Compare a password with a hash of the books; it takes as long where there is none.

        Raises:
            PasswordsBusyError: too many wait.
        """
        return await self._run(lambda: self._compare(_encoded(password), hash_))

    def close(self) -> None:
        """Begin nothing more; what runs ends."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _compare(self, password: bytes, hash_: str | None) -> bool:
        if hash_ is None:
            self._hasher.hash(password)
            return False
        try:
            return self._hasher.verify(hash_, password)
        except VerifyMismatchError:
            return False

    async def _run(self, function: Callable[[], T]) -> T:
        if not self._room.acquire(blocking=False):
            raise PasswordsBusyError(f"More than {WAITING_MAX} passwords wait to be compared.")
        try:
            future = self._thread.submit(function)
        except RuntimeError:
            self._room.release()
            raise PasswordsBusyError("The service is stopping.") from None
        future.add_done_callback(lambda _: self._room.release())  # also when whoever asked has left
        return await asyncio.wrap_future(future)


def may_be_password(text: str) -> bool:
    """Tell whether a person may choose this: LENGTH_MIN to LENGTH_MAX characters of Unicode text."""
    return LENGTH_MIN <= len(normalize("NFKC", text)) <= LENGTH_MAX and not any(map(_is_surrogate, text))


def _is_surrogate(character: str) -> bool:
    return "\ud800" <= character <= "\udfff"


def _encoded(password: str) -> bytes:
    return normalize("NFKC", password).encode("utf-8", "surrogatepass")
