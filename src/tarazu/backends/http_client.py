"""The HTTP client for model servers: one POST, bounded in time and size, with every failure named."""

import asyncio
from datetime import timedelta
from pathlib import Path

from msgspec import Struct
from wreq import Client, Response, Runtime, exceptions
from wreq.redirect import Policy
from wreq.tls import CertStore

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
    """Status, Retry-After and whole body of an answer."""

    status: int
    body: bytes
    retry_after: str | None = None


class HttpClient:
    """Asks model servers. Redirects are not followed, so no key goes to another host; TLS is always verified.

    A call that is cancelled is cut off at the server at once. Each has a connection of its own: it is HTTP/1.1, also
    where a server offers HTTP/2, in which all share one, and those beyond the server's bound of streams wait unseen.
    """

    def __init__(self) -> None:
        self._runtime = Runtime(workers=1, thread_name="backends")
        self._client = _client(self._runtime)
        self._direct = _client(self._runtime, no_proxy=True)
        self._trusting: dict[str, tuple[bytes, Client]] = {}

    def close(self) -> None:
        """End all calls."""
        for client in (self._client, self._direct, *(client for _, client in self._trusting.values())):
            client.close()

    def trust(self, ca_file: str) -> None:
        """Make calls possible in which a server is trusted when an authority in this PEM file says so, and no other.

        A file that has changed since the last time is in force from the next call on.

        Raises:
            OSError: the file cannot be read.
        """
        authorities = Path(ca_file).read_bytes()
        if ca_file not in self._trusting or self._trusting[ca_file][0] != authorities:
            client = _client(self._runtime, tls_verify=CertStore.from_pem_stack(authorities))
            self._trusting[ca_file] = authorities, client

    async def post_json(
        self,
        url: str,
        body: bytes,
        *,
        headers: dict[str, str],
        timeout_s: float,
        direct: bool = False,
        ca_file: str | None = None,
    ) -> HttpReply:
        """Send a JSON body and read the whole answer.

        `direct` passes by any proxy of the environment. `ca_file` has been given to `trust`.

        Raises:
            BackendError: unreachable, out of time, or an answer of more than REPLY_BYTES_MAX.
        """
        if timeout_s <= 0:  # a pause before this try took longer than it was to
            raise BackendError(Fault.TIMEOUT)
        client = self._chosen(direct=direct, ca_file=ca_file)
        try:
            # The client's own time-out looks like a broken connection when it comes in the body.
            async with (
                asyncio.timeout(timeout_s),
                client.post(
                    url,
                    headers={"content-type": "application/json", "accept": "application/json", **headers},
                    body=body,
                ) as response,
            ):
                content = await read_body(response, REPLY_BYTES_MAX)
                if content is None:
                    raise BackendError(Fault.INVALID_REPLY, f"more than {REPLY_BYTES_MAX} bytes")
                return HttpReply(response.status.as_int(), content, _text(response.headers.get("retry-after")))
        except (TimeoutError, exceptions.TimeoutError):  # the latter while connecting
            raise BackendError(Fault.TIMEOUT) from None
        except FAILURES as error:
            # The error's own words may hold the address.
            raise BackendError(Fault.UNREACHABLE, type(error).__name__) from None

    def _chosen(self, *, direct: bool, ca_file: str | None) -> Client:
        if ca_file is not None:
            return self._trusting[ca_file][1]
        return self._direct if direct else self._client


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


def _text(header: memoryview | None) -> str | None:
    return None if header is None else bytes(header).decode("latin-1")


def _client(runtime: Runtime, *, no_proxy: bool = False, tls_verify: bool | CertStore = True) -> Client:
    return Client(
        runtime=runtime,
        no_proxy=no_proxy,
        tls_verify=tls_verify,
        redirect=Policy.none(),
        http1_only=True,
        connect_timeout=timedelta(seconds=CONNECT_TIMEOUT_S),
        pool_idle_timeout=timedelta(seconds=IDLE_TIMEOUT_S),
        pool_max_idle_per_host=IDLE_CONNECTIONS_MAX,
        user_agent="tarazu",
    )
