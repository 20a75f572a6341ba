"""The head of a request: held to its bounds before any parser sees it, and taken apart once. Row 0 of the checks."""

from collections import Counter
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet

from msgspec import Struct
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tarazu.api.envelope import error_body, send_json
from tarazu.domain.errors import Error, Refusal
from tarazu.service.own_connections import Peer

HEAD_BYTES_MAX = 32 * 1024
"""Of the request line and all headers, with what separates them."""
HEADER_BYTES_MAX = 8 * 1024
"""Of one header: its name, its value, and what separates the two."""
LENGTH_DIGITS_MAX = 19
"""Of Content-Length."""
PARAMETERS_MAX = 100
"""Of a query."""
CLOSE = (b"connection", b"close")
HEAD = "tarazu.head"
"""Where a request's scope keeps its head."""

_REQUEST_LINE = len(b"  HTTP/1.1\r\n") + len(b"\r\n")
_LINE_END = len(b"\r\n")
_header = b": ".join


SMALL_BODY = 4 * 1024
"""Bytes of a body that most clients send together with the head, or right behind it."""


class Head(Struct, frozen=True):
    """The headers of a request by their names in lower case.

    Of a header that came more than once `values` has the last value, and `repeated` its name.
    """

    values: dict[bytes, bytes]
    repeated: AbstractSet[bytes] = frozenset()

    @property
    def has_body(self) -> bool:
        """Whether the request says that a body follows."""
        return self.values.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in self.values

    @property
    def has_small_body(self) -> bool:
        """Whether a body, if any, most likely has come with the head."""
        return b"transfer-encoding" not in self.values and int(self.values.get(b"content-length", b"0")) <= SMALL_BODY


class Heads:
    """An ASGI application in front of all that reads a head: lets only those pass that are within their bounds.

    A path is routed as it was sent, so that nothing is reached by another spelling of its path than a proxy in front
    may know. Percent-encoding is undone after the `encoded` beginnings alone, which the ids of models follow.
    """

    def __init__(self, app: ASGIApp, encoded: tuple[bytes, ...]) -> None:
        self._app = app
        self._encoded = encoded

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http":
            head = read_head(scope)
            if isinstance(head, Refusal):
                await send_json(send, head.kind.status, error_body(head), [CLOSE])
                return
            scope[HEAD] = head
            path = scope["raw_path"]
            if b"%" in path and not path.startswith(self._encoded):
                scope["path"] = path.decode("latin-1")
        await self._app(scope, receive, send)


class EarlyAnswers:
    """An ASGI application that closes the connection behind an answer which is given before the body has ended.

    What is still to come of the body is nothing that anybody waits for, however long it may take. `see_off` is told of
    the peer then.
    """

    def __init__(self, app: ASGIApp, see_off: Callable[[Peer], None]) -> None:
        self._app = app
        self._see_off = see_off

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or not head_of(scope).has_body:
            await self._app(scope, receive, send)
            return
        length = head_of(scope).values.get(b"content-length")
        left = None if length is None else int(length)
        has_ended = False

        async def receive_on() -> Message:
            nonlocal has_ended, left
            message = await receive()
            if message["type"] == "http.request":
                left = None if left is None else left - len(message.get("body", b""))
                has_ended = left == 0 or not message.get("more_body", False)
            return message

        async def send_on(message: Message) -> None:
            if message["type"] == "http.response.start" and not has_ended:
                message["headers"] = [*message["headers"], CLOSE]
            await send(message)

        await self._app(scope, receive_on, send_on)
        if not has_ended:
            self._see_off(tuple(scope["client"]))


def head_of(scope: Scope) -> Head:
    """Tell the head of a request that was let pass."""
    head: Head = scope[HEAD]
    return head


def read_head(scope: Scope) -> Head | Refusal:
    """Take a head apart, or refuse it."""
    headers, query = scope["headers"], scope["query_string"]
    sizes = [*map(len, map(_header, headers))]
    line = len(scope["method"]) + len(scope["raw_path"]) + (len(query) + 1 if query else 0) + _REQUEST_LINE
    if max(sizes, default=0) > HEADER_BYTES_MAX or sum(sizes, line) + len(sizes) * _LINE_END > HEAD_BYTES_MAX:
        return Refusal(error=Error.HEADERS_TOO_LARGE)
    values = dict(headers)
    repeated = _repeated(headers) if len(values) < len(headers) else frozenset()
    if not values.get(b"host") or b"host" in repeated:  # where there is none, the server hands over an empty one
        return _invalid("Send one Host header.")
    if b"transfer-encoding" in values and values[b"transfer-encoding"].lower() != b"chunked":
        return _invalid("Send the body without a Transfer-Encoding, or with chunked.")
    length = values.get(b"content-length", b"0")  # the server passes `5, 5` on, and thousands of zeros
    if len(length) > LENGTH_DIGITS_MAX or not length.isdigit():
        return _invalid("Send one Content-Length, in a few digits.")
    if query and query.count(b"&") >= PARAMETERS_MAX:
        return _invalid(f"Send at most {PARAMETERS_MAX} parameters in the query.")
    return Head(values, repeated)


def _repeated(headers: Iterable[tuple[bytes, bytes]]) -> AbstractSet[bytes]:
    return frozenset(name for name, number in Counter(name for name, _ in headers).items() if number > 1)


def _invalid(message: str) -> Refusal:
    return Refusal(error=Error.INVALID_REQUEST, message=message)
