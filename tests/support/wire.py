"""A connection to the service, byte by byte: for requests that no HTTP client would send."""

import http.client
import socket
from types import TracebackType
from typing import Self

from tests.support.patience import PATIENCE_S
from tests.support.service import CHAT, Answer, Customer


class Wire:
    """One TCP connection to the service. A small `receive_buffer_bytes` lets an unread answer jam soon."""

    def __init__(self, port: int, *, receive_buffer_bytes: int | None = None) -> None:
        self.socket = socket.socket()
        self.socket.settimeout(PATIENCE_S)
        if receive_buffer_bytes is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        self.socket.connect(("127.0.0.1", port))

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

    def read_to_end(self) -> bytes:
        """Read all that comes until the service closes."""
        received = bytearray()
        while part := self.socket.recv(65_536):
            received += part
        return bytes(received)

    def answer(self) -> Answer:
        """Read one answer."""
        response = http.client.HTTPResponse(self.socket)
        response.begin()
        return Answer.of(response)


def chat_head(customer: Customer, *lines: str) -> bytes:
    """Write the head of a POST to /chat/completions with a good key and type, and these further header lines."""
    head = (
        f"POST {CHAT} HTTP/1.1",
        "Host: test",
        f"Authorization: {customer.bearer}",
        "Content-Type: application/json",
        *lines,
    )
    return "\r\n".join(head).encode("latin-1") + b"\r\n\r\n"


def chunk(data: bytes) -> bytes:
    """Write one chunk of a chunked body."""
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"
