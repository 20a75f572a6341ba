"""Take in a request body: its type, and its bytes within bounds of size and time. Rows 8 and 9 of the checks."""

import asyncio

from starlette.types import Receive

from tarazu.api.content_type import JSON, is_declared_as
from tarazu.api.head import Head
from tarazu.domain.errors import Error, Refusal
from tarazu.service.completion import busy

BODY_BYTES_MAX = 1024 * 1024
BODY_TIMEOUT_S = 10
"""For the whole body: what is half-sent for longer is answered and forgotten."""
BUFFERED_BYTES_MAX = 128 * 1024 * 1024
"""For all bodies that one process is taking in at once."""
BROKEN_OFF = "The request body broke off before its end."


class BodyReader:
    """Reads bodies for one process, and counts what they hold together."""

    def __init__(self, *, timeout_s: float = BODY_TIMEOUT_S) -> None:
        self._timeout_s = timeout_s
        self._buffered_bytes = 0

    def __repr__(self) -> str:
        return f"<BodyReader holding {self._buffered_bytes} bytes>"

    async def read(self, head: Head, receive: Receive) -> bytes | Refusal:
        """Read the body, never further than its bounds."""
        if not _is_json(head):
            return Refusal(error=Error.UNSUPPORTED_MEDIA_TYPE)
        if int(head.values.get(b"content-length", b"0")) > BODY_BYTES_MAX:  # a chunked body is counted as it comes
            return Refusal(error=Error.INPUT_TOO_LARGE)
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._read(receive)
        except TimeoutError:
            return Refusal(error=Error.REQUEST_TIMEOUT)

    async def _read(self, receive: Receive) -> bytes | Refusal:
        chunks: list[bytes] = []
        size = 0
        try:
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    # Gone, or the framing is malformed, and then there is somebody to read the answer.
                    return Refusal(error=Error.INVALID_REQUEST, message=BROKEN_OFF)
                chunk = message.get("body", b"")
                chunks.append(chunk)
                size += len(chunk)
                self._buffered_bytes += len(chunk)
                if size > BODY_BYTES_MAX:
                    return Refusal(error=Error.INPUT_TOO_LARGE)
                if self._buffered_bytes > BUFFERED_BYTES_MAX:
                    return busy()
                if not message.get("more_body", False):
                    return b"".join(chunks)
        finally:
            self._buffered_bytes -= size


def _is_json(head: Head) -> bool:
    """Tell whether the body is declared as JSON in UTF-8 and not encoded."""
    if b"content-encoding" in head.values and not _is_plain(head):
        return False
    return b"content-type" not in head.repeated and is_declared_as(JSON, head.values.get(b"content-type", b""))


def _is_plain(head: Head) -> bool:
    return b"content-encoding" not in head.repeated and head.values[b"content-encoding"].strip().lower() == b"identity"
