"""The connections of this process as the C library tells of them: all, and no other; each is cut off by its peer."""

import os
import socket
from contextlib import ExitStack, closing, suppress
from typing import Any

import pytest

from tarazu.service.own_connections import OwnConnections, cut
from tests.support.processes import no_file_left


def named(name: tuple[Any, ...]) -> tuple[str, str]:
    """Write the name of a socket as a peer's is."""
    return name[0], str(name[1])


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_the_connections_at_a_port_are_found(host: str) -> None:
    """Both kinds of addresses; not what listens, nor what leads from here to others, nor other files."""
    with ExitStack() as stack:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = stack.enter_context(socket.create_server((host, 0), family=family))
        other = stack.enter_context(socket.create_server((host, 0), family=family))
        port = listener.getsockname()[1]
        own = stack.enter_context(closing(OwnConnections(port)))
        before = own.in_use()
        clients = [stack.enter_context(socket.create_connection((host, port))) for _ in range(3)]
        accepted = [stack.enter_context(listener.accept()[0]) for _ in range(3)]
        stack.enter_context(socket.create_connection((host, other.getsockname()[1])))
        found = dict(own.list())
        assert found == {named(each.getpeername()): each.fileno() for each in accepted}
        assert sorted(found) == sorted(named(client.getsockname()) for client in clients)
        assert own.in_use() >= before + len(clients)


def test_an_ipv4_caller_at_a_port_for_both_is_found() -> None:
    """Under the name that the kernel gives it there."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True))
        port = listener.getsockname()[1]
        client = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        accepted = stack.enter_context(listener.accept()[0])
        peer = ("::ffff:127.0.0.1", str(client.getsockname()[1]))
        own = stack.enter_context(closing(OwnConnections(port)))
        assert dict(own.list()) == {peer: accepted.fileno()}


def test_they_are_listed_where_no_file_can_be_opened_any_more() -> None:
    """A crowd must be found just then."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        own = stack.enter_context(closing(OwnConnections(listener.getsockname()[1])))
        client = stack.enter_context(socket.create_connection(listener.getsockname()))
        accepted = stack.enter_context(listener.accept()[0])
        with no_file_left(os.getpid()):
            with pytest.raises(OSError, match="Too many open files"):
                os.open(os.devnull, os.O_RDONLY)
            assert own.in_use() >= 2
            assert dict(own.list()) == {named(client.getsockname()): accepted.fileno()}


def test_a_connection_is_cut_off_with_what_waits_to_be_sent() -> None:
    """The peer hears of it at once."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        client = stack.enter_context(socket.create_connection(listener.getsockname()))
        accepted = stack.enter_context(listener.accept()[0])
        accepted.settimeout(0)
        assert _sent_until_full(accepted) > 0
        assert cut(accepted.fileno(), named(client.getsockname()))
        accepted.close()
        with pytest.raises(ConnectionResetError):
            _read_to_the_end(client)


def _sent_until_full(sender: socket.socket) -> int:
    sent = 0
    with suppress(BlockingIOError):
        while True:
            sent += sender.send(b"x" * 65_536)
    return sent


def _read_to_the_end(reader: socket.socket) -> None:
    while reader.recv(65_536):
        pass


def test_what_is_another_now_is_not_cut() -> None:
    """A number that has got another connection since, or none, or no socket at all."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        client = stack.enter_context(socket.create_connection(listener.getsockname()))
        accepted = stack.enter_context(listener.accept()[0])
        assert not cut(accepted.fileno(), ("127.0.0.1", "1"))
        assert not cut(0, named(client.getsockname()))
        assert not cut(99_999, named(client.getsockname()))
        client.send(b"still here")
        assert accepted.recv(99) == b"still here"
