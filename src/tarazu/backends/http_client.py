"""The HTTP client for model servers: one POST, bounded in time and size, with every failure named."""

from datetime import timedelta

import msgspec
from msgspec import Struct
from wreq import Client, Response, Runtime, exceptions
from wreq.redirect import Policy

from tarazu.backends.port import BackendError, Fault

CONNECT_TIMEOUT_S = 10
IDLE_TIMEOUT_S = 20
"""Shorter than the keep-alive of common servers, so that a kept connection is seldom closed under a request."""
IDLE_CONNECTIONS_MAX = 512
"""Kept open to one server."""
REPLY_BYTES_MAX = 4 * 1024 * 1024

FAILURES = (
    exceptions.BodyError,
    exceptions.BuilderError,
    exceptions.ConnectionError,
    exceptions.ConnectionResetError,
    exceptions.DecodingError,
    exceptions.ProxyConnectionError,
    exceptions.RequestError,
    exceptions.TlsError,
)
"""How a call ends without an answer, but for a time-out."""


class HttpReply(Struct, frozen=True):
    """Status and whole body of an answer."""

    status: int
    body: bytes


class HttpClient:
    """Asks model servers. Redirects are not followed, so no key goes to another host; TLS is verified.

    A call that is cancelled is cut off at the server at once.
    """

    def __init__(self) -> None:
        runtime = Runtime(workers=1, thread_name="backends")
        self._client = _client(runtime, no_proxy=False)
        self._direct = _client(runtime, no_proxy=True)

    def close(self) -> None:
        """End all calls."""
        self._client.close()
        self._direct.close()

    async def post_json(
        self, url: str, body: Struct, *, headers: dict[str, str], timeout_s: float, direct: bool = False
    ) -> HttpReply:
        """Send a JSON body and read the whole answer; `direct` passes by any proxy of the environment.

        Raises:
            BackendError: unreachable, out of time, or an answer of more than REPLY_BYTES_MAX.
        """
        if timeout_s <= 0:  # a pause before this try took longer than it was to
            raise BackendError(Fault.TIMEOUT)
        client = self._direct if direct else self._client
        try:
            async with client.post(
                url,
                headers={"content-type": "application/json", "accept": "application/json", **headers},
                body=msgspec.json.encode(body),
                timeout=timedelta(seconds=timeout_s),
            ) as response:
                content = await read_body(response, REPLY_BYTES_MAX)
                if content is None:
                    raise BackendError(Fault.INVALID_REPLY, f"more than {REPLY_BYTES_MAX} bytes")
                return HttpReply(response.status.as_int(), content)
        except exceptions.TimeoutError:
            raise BackendError(Fault.TIMEOUT) from None
        except FAILURES as error:
            # The error's own words may hold the address.
            raise BackendError(Fault.UNREACHABLE, type(error).__name__) from None


async def read_body(response: Response, bytes_max: int) -> bytes | None:
    """Read the whole body of an answer, or no further than `bytes_max`: then None."""
    body = bytearray()
    async with response.stream() as chunks:
        async for chunk in chunks:
            if isinstance(chunk, memoryview):  # the rest are trailers
                body += chunk
            if len(body) > bytes_max:
                return None
    return bytes(body)


def _client(runtime: Runtime, *, no_proxy: bool) -> Client:
    return Client(
        runtime=runtime,
        no_proxy=no_proxy,
        redirect=Policy.none(),
        connect_timeout=timedelta(seconds=CONNECT_TIMEOUT_S),
        pool_idle_timeout=timedelta(seconds=IDLE_TIMEOUT_S),
        pool_max_idle_per_host=IDLE_CONNECTIONS_MAX,
        user_agent="tarazu",
    )
