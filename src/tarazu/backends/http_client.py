"""The HTTP client for model servers: one POST, bounded in time and size, with every failure named."""

from collections.abc import Awaitable, Callable
from datetime import timedelta

import msgspec
from msgspec import Struct
from pyreqwest.bytes import Bytes
from pyreqwest.client import ClientBuilder
from pyreqwest.exceptions import PyreqwestError, RequestTimeoutError

from tarazu.backends.port import BackendError, Fault

CONNECT_TIMEOUT_S = 10
IDLE_TIMEOUT_S = 20
"""Shorter than the keep-alive of common servers, so that a kept connection is seldom closed under a request."""
REPLY_BYTES_MAX = 4 * 1024 * 1024


class HttpReply(Struct, frozen=True):
    """Status and whole body of an answer."""

    status: int
    body: bytes


class HttpClient:
    """Asks model servers. Redirects are not followed, so no key goes to another host; TLS is verified."""

    def __init__(self) -> None:
        self._client = _builder().build()
        self._direct = _builder().no_proxy().build()

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()
        await self._direct.close()

    async def post_json(
        self, url: str, body: Struct, *, headers: dict[str, str], timeout_s: float, direct: bool = False
    ) -> HttpReply:
        """Send a JSON body and read the whole answer; `direct` passes by any proxy of the environment.

        Raises:
            BackendError: unreachable, out of time, or an answer of more than REPLY_BYTES_MAX.
        """
        client = self._direct if direct else self._client
        request = (
            client.post(url)
            .headers({"content-type": "application/json", "accept": "application/json", **headers})
            .body_bytes(msgspec.json.encode(body))
            .timeout(timedelta(seconds=timeout_s))
            .build_streamed()
        )
        try:
            async with request as response:
                return HttpReply(response.status, await _read(response.body_reader.read_chunk))
        except RequestTimeoutError:
            raise BackendError(Fault.TIMEOUT) from None
        except PyreqwestError as error:
            # The error's own words may hold the address.
            raise BackendError(Fault.UNREACHABLE, type(error).__name__) from None


async def _read(read_chunk: Callable[[], Awaitable[Bytes | None]]) -> bytes:
    chunks, size = [], 0
    while (chunk := await read_chunk()) is not None:
        size += len(chunk)
        if size > REPLY_BYTES_MAX:
            raise BackendError(Fault.INVALID_REPLY, f"more than {REPLY_BYTES_MAX} bytes")
        chunks.append(bytes(chunk))
    return b"".join(chunks)


def _builder() -> ClientBuilder:
    return (
        ClientBuilder()
        .follow_redirects(enable=False)
        .connect_timeout(timedelta(seconds=CONNECT_TIMEOUT_S))
        .pool_idle_timeout(timedelta(seconds=IDLE_TIMEOUT_S))
        .user_agent("tarazu")
    )
