"""A socket of this process that listens."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def listening(host: str) -> Iterator[socket.socket]:
    """Listen at a free port of an address; at `::` for both kinds of addresses."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family, dualstack_ipv6=host == "::") as listener:
        yield listener
