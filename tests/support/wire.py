"""A connection to the service, byte by byte: for requests that no HTTP client would send."""

import http.client
import socket
from types import TracebackType
from typing import Self

from tests.support.service import CHAT, REQUEST_TIMEOUT_S, Answer, Customer


class Wire:
    """One TCP connection to the service."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=REQUEST_TIMEOUT_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        """Send all of it."""
        self.socket.sendall(data)

    def send_until_cut_off(self, piece: bytes, at_most_bytes: int) -> int:
        """Send the piece over and over until the service closes; tell how many bytes it took."""
        sent = 0
        try:
            while sent < at_most_bytes:
                self.socket.sendall(piece)
                sent += len(piece)
        except (BrokenPipeError, ConnectionResetError):
            pass
        return sent

    def answer(self) -> Answer:
        """Read one answer."""
        response = http.client.HTTPResponse(self.socket)
        response.begin()
        return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, response.read())


def chat_head(customer: Customer, *lines: str) -> bytes:
    """Write the head of a POST to /chat/completions with a good key and type, and these further header lines."""
    head = (
        f"POST {CHAT} HTTP/1.1",
        "Host: test",
        f"Authorization: Bearer {customer.secret}",
        "Content-Type: application/json",
        *lines,
    )
    return "\r\n".join(head).encode("latin-1") + b"\r\n\r\n"


def chunk(data: bytes) -> bytes:
    """Write one chunk of a chunked body."""
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"
