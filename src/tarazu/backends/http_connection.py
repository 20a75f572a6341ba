"""One connection to a server, by HTTP/1.1: a request goes out, its whole answer comes in, bounded in time and size."""

import asyncio
import zlib
from typing import cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser
from msgspec import Struct

HEAD_BYTES_MAX = 64 * 1024
"""Of the headers of one answer, its trailers included; each 1xx answer before it may have as many."""
FRAMING_FACTOR_MAX = 8
"""A chunked body comes in at most so many times its size: a byte in a chunk of its own takes six."""
FIRST_FINAL_STATUS = 200
FRAMING = frozenset({b"content-length", b"transfer-encoding"})
"""A body with neither ends when the connection does."""
ZIPPED = frozenset({b"gzip", b"x-gzip", b"deflate"})
GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS


class HttpReply(Struct, frozen=True):
    """Status, Retry-After and whole body of an answer."""

    status: int
    body: bytes
    retry_after: str | None = None


class HttpError(Exception):
    """There is no answer. Its text says why, and holds no address."""


class NoOpenFileError(HttpError):
    """No connection can be opened: this process, or the machine, has as many files open as it may."""


class TooLargeError(HttpError):
    """The answer is larger than it may be."""


class HttpConnection(asyncio.Protocol):
    """Carries one exchange after another. `is_free`: it may carry the next.

    It is cut off whenever something is not as it should be: an exchange that is cancelled or out of time, an answer
    that is malformed, bytes that nobody asked for.
    """

    def __init__(self) -> None:
        self.is_free = False
        self.free_since_s = 0.0
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self._parser = HttpResponseParser(self)
        self._waiter: asyncio.Future[HttpReply] | None = None
        self._retry_after: str | None = None
        self._clear()

    async def exchange(self, request: bytes, *, bytes_max: int, timeout_s: float) -> HttpReply:
        """Send a request and wait for its answer, whose body has `bytes_max` bytes at most.

        Raises:
            HttpError: the connection broke, or the answer is none.
            TimeoutError: the time is over.
        """
        if not self.is_free or self._transport is None:
            raise HttpError("connection closed")
        self.is_free = False
        self._bytes_max = bytes_max
        self._bytes_left = HEAD_BYTES_MAX + FRAMING_FACTOR_MAX * bytes_max
        self._clear()
        waiter: asyncio.Future[HttpReply] = self._loop.create_future()
        self._waiter = waiter
        timer = self._loop.call_later(timeout_s, self._fail, TimeoutError())
        try:
            self._transport.write(request)
            return await waiter
        except BaseException:
            self.cut()
            raise
        finally:
            self._waiter = None
            timer.cancel()

    def cut(self) -> None:
        """End the connection, and the exchange that it carries."""
        self.is_free = False
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Be ready for the first exchange."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's have another base
        self.is_free = True

    def data_received(self, data: bytes) -> None:
        """Read on in the answer. What comes when nobody asked belongs to none."""
        if self._is_answered:
            self.cut()
            return
        self._bytes_left -= len(data)
        if self._bytes_left < 0:
            self._fail(TooLargeError("answer too large"))
            return
        self._unread_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            self._fail(HttpError("malformed answer"))
        # The parser keeps a header without end, and does not tell of it.
        if not self._status and self._unread_bytes > HEAD_BYTES_MAX:
            self._fail(HttpError("malformed answer"))

    def eof_received(self) -> None:
        """Take it for the end of a body that has no other."""
        self.is_free = False
        if not self._is_answered and self._ends_with_connection:
            self._finish()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell whoever waits."""
        self._fail(HttpError("connection closed" if exc is None else "connection broken"))

    # What the parser calls. It would hide what they raise.

    def on_message_begin(self) -> None:
        """Refuse a second answer."""
        if self._is_answered:
            self.cut()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Note the few that matter."""
        self._head_bytes_left -= len(name) + len(value)
        if self._head_bytes_left < 0:
            self._fail(HttpError("malformed answer"))
        name = name.lower()
        if name in FRAMING:
            self._is_framed = True
        elif name == b"retry-after":
            self._retry_after = value.decode("latin-1")
        elif name == b"content-encoding":
            self._coding = value.strip().lower()

    def on_headers_complete(self) -> None:
        """Note what only the parser knows, and only now."""
        self._status = self._parser.get_status_code()
        self._keeps_alive = self._parser.should_keep_alive()
        self._ends_with_connection = not self._is_framed

    def on_body(self, part: bytes) -> None:
        """Keep no more than may come."""
        self._body_bytes += len(part)
        if self._body_bytes > self._bytes_max:
            self._fail(TooLargeError("answer too large"))
        else:
            self._body.append(part)

    def on_message_complete(self) -> None:
        """Answer, unless this was a 1xx, after which the answer proper comes."""
        if self._status < FIRST_FINAL_STATUS:
            self._clear()
        elif not self._is_answered and self._transport is not None:
            # A server that answers before it has read the whole request may take the rest for the next one.
            self.is_free = self._keeps_alive and self._transport.get_write_buffer_size() == 0
            self._finish()

    @property
    def _is_answered(self) -> bool:
        return self._waiter is None or self._waiter.done()

    def _clear(self) -> None:
        self._head_bytes_left = HEAD_BYTES_MAX
        self._unread_bytes = 0
        self._status = 0
        self._retry_after = None
        self._coding = b""
        self._is_framed = self._keeps_alive = self._ends_with_connection = False
        self._body: list[bytes] = []
        self._body_bytes = 0

    def _finish(self) -> None:
        assert self._waiter is not None
        body = b"".join(self._body)
        self._body.clear()
        try:
            if self._coding in ZIPPED and body:
                body = _unzipped(body, self._bytes_max)
        except HttpError as error:
            self._fail(error)
        else:
            self._waiter.set_result(HttpReply(self._status, body, self._retry_after))

    def _fail(self, error: Exception) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)
        self.cut()


def _unzipped(body: bytes, bytes_max: int) -> bytes:
    """Read what a server has zipped although it was asked not to."""
    unzip = zlib.decompressobj(GZIP_OR_ZLIB)
    try:
        content = unzip.decompress(body, bytes_max + 1)
    except zlib.error:
        raise HttpError("malformed answer") from None
    if len(content) > bytes_max:
        raise TooLargeError("answer too large")
    if not unzip.eof:
        raise HttpError("malformed answer")
    return content
