"""Take in a request body: its type, and its bytes within bounds of size and time. Rows 8 and 9 of the checks.

A small body that comes with its request costs nothing but its reading. For any other the caller must be known first:
whoever is not can hold neither much memory nor much time.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable

from starlette.types import Receive

from tarazu.api.content_type import JSON, is_declared_as
from tarazu.api.head import Head
from tarazu.api.unless import unless
from tarazu.domain.errors import Error, Refusal
from tarazu.domain.keys import PresentedKey
from tarazu.service.completion import busy

BODY_BYTES_MAX = 1024 * 1024
BODY_TIMEOUT_S = 10
"""For the whole body: what is half-sent for longer is answered and forgotten."""
SMALL_BYTES_MAX = 16 * 1024
"""A larger body is read for a known key alone."""
EARLY_S = 0.05
"""A body that has not come by then is read on for a known key alone."""
BUFFERED_BYTES_MAX = 128 * 1024 * 1024
"""For all bodies that one process is taking in at once."""
ACCOUNT_BYTES_MAX = BUFFERED_BYTES_MAX // 4
"""For those of one account."""
UNKNOWN_BYTES_MAX = 8 * 1024 * 1024
"""For the small ones of all whose key has not been looked up; when it is reached, the next one's is."""
PIECES_MAX = 1_024
BYTES_OF_PIECE_LEAST = 256
"""A body may come in so many pieces, and in one more for each so many bytes: each costs much more than its bytes."""
UNKNOWN = ""
"""Stands for the account of a caller who is not known yet."""
BROKEN_OFF = "The request body broke off before its end."
IN_CRUMBS = "The request body comes in too many small pieces."

Identify = Callable[[PresentedKey], Awaitable[str | Refusal]]
"""Tells whose key it is, by the account's id, or why it is not let in."""


class _Part:
    """What has been taken in of one body, and for which account."""

    def __init__(self, account: str) -> None:
        self.account = account
        self.bytes = 0


class BodyReader:
    """Reads bodies for one process, and counts what those hold together that are not there yet.

    Without `identify` all callers are known: they have been let in before.
    """

    def __init__(self, identify: Identify | None = None, *, timeout_s: float = BODY_TIMEOUT_S) -> None:
        self._identify = identify
        self._timeout_s = timeout_s
        self._buffered_bytes = 0
        self._bytes_of: defaultdict[str, int] = defaultdict(int)

    def __repr__(self) -> str:
        return f"<BodyReader holding {self._buffered_bytes} bytes>"

    async def read(self, head: Head, receive: Receive, key: PresentedKey | None = None) -> bytes | Refusal:
        """Read the body, never further than its bounds, nor than `key` lets it: rows 4 and 5 come first then."""
        if not _is_json(head):
            return Refusal(error=Error.UNSUPPORTED_MEDIA_TYPE)
        length = head.values.get(b"content-length")
        declared = None if length is None else int(length)  # a chunked body is counted as it comes
        if declared is not None and declared > BODY_BYTES_MAX:
            return Refusal(error=Error.INPUT_TOO_LARGE)
        part = _Part(UNKNOWN)
        if (declared is None or declared > SMALL_BYTES_MAX) and (refusal := await self._look_up(key, part)):
            return refusal
        return await self._read_in_time(receive, declared, key, part)

    async def _read_in_time(
        self, receive: Receive, declared: int | None, key: PresentedKey | None, part: _Part
    ) -> bytes | Refusal:
        """Read; what is not there after EARLY_S is watched: its key is looked up, and its time runs."""

        async def watch() -> Refusal:
            refusal = await self._look_up(key, part)
            if refusal is None:
                await asyncio.sleep(self._timeout_s - EARLY_S)
            return refusal or Refusal(error=Error.REQUEST_TIMEOUT)

        try:
            return await unless(self._read(receive, declared, key, part), watch, after_s=EARLY_S)
        finally:
            if part.bytes:
                self._count(part, -part.bytes)

    async def _read(
        self, receive: Receive, declared: int | None, key: PresentedKey | None, part: _Part
    ) -> bytes | Refusal:
        chunks: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                # Gone, or the framing is malformed, and then there is somebody to read the answer.
                return Refusal(error=Error.INVALID_REQUEST, message=BROKEN_OFF)
            chunk = message.get("body", b"")
            chunks.append(chunk)
            size += len(chunk)
            if size > BODY_BYTES_MAX:
                return Refusal(error=Error.INPUT_TOO_LARGE)
            if is_in_crumbs(len(chunks), size):
                return Refusal(error=Error.INVALID_REQUEST, message=IN_CRUMBS)
            if size == declared or not message.get("more_body", False):
                return b"".join(chunks)
            self._count(part, len(chunk))
            if refusal := await self._make_room(key, part):
                return refusal

    def _count(self, part: _Part, more: int) -> None:
        part.bytes += more
        self._buffered_bytes += more
        self._bytes_of[part.account] += more
        if not self._bytes_of[part.account]:
            del self._bytes_of[part.account]

    async def _make_room(self, key: PresentedKey | None, part: _Part) -> Refusal | None:
        """Refuse what is more than may be held; a caller who is not known has the key looked up first."""
        if self._identify is None:
            return busy() if self._buffered_bytes > BUFFERED_BYTES_MAX else None
        if part.account == UNKNOWN and self._bytes_of[UNKNOWN] > UNKNOWN_BYTES_MAX:
            refusal = await self._look_up(key, part)
            if refusal is not None:
                return refusal
        is_too_much = part.account != UNKNOWN and self._bytes_of[part.account] > ACCOUNT_BYTES_MAX
        return busy() if is_too_much or self._buffered_bytes > BUFFERED_BYTES_MAX else None

    async def _look_up(self, key: PresentedKey | None, part: _Part) -> Refusal | None:
        """Find out whose body it is, once, from fresh rows."""
        if self._identify is None or part.account != UNKNOWN:
            return None
        assert key is not None
        account = await self._identify(key)
        if isinstance(account, Refusal):
            return account
        held = part.bytes
        self._count(part, -held)
        part.account = account
        self._count(part, held)
        return None


def is_in_crumbs(pieces: int, size: int) -> bool:
    """Tell whether a body of this size has come in more pieces than it may."""
    return pieces > PIECES_MAX + size // BYTES_OF_PIECE_LEAST


def _is_json(head: Head) -> bool:
    """Tell whether the body is declared as JSON in UTF-8 and not encoded."""
    if b"content-encoding" in head.values and not _is_plain(head):
        return False
    return b"content-type" not in head.repeated and is_declared_as(JSON, head.values.get(b"content-type", b""))


def _is_plain(head: Head) -> bool:
    return b"content-encoding" not in head.repeated and head.values[b"content-encoding"].strip().lower() == b"identity"
