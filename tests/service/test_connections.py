"""The connections of a port are counted, and a socket that takes no more loses none of those that are made."""

import os
import socket
from collections.abc import Iterator

import pytest

from tarazu.service.connections import PortState, port_state, take_no_more
from tests.support.at_once import wait_until
from tests.support.processes import open_files

REFUSED_AFTER_S = 0.3
"""Who connects in vain hears nothing: it is enough to see that for a moment."""


@pytest.fixture(params=["127.0.0.1", "::1"])
def listener(request: pytest.FixtureRequest) -> Iterator[socket.socket]:
    """A socket that listens at a free port."""
    host: str = request.param
    with socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET) as listener:
        yield listener


def test_what_is_open_and_what_waits_are_counted(listener: socket.socket) -> None:
    """From the side that listens; what is closed counts no longer."""
    port = listener.getsockname()[1]
    assert port_state(port) == PortState(open=0, waiting=0)
    with socket.create_connection(listener.getsockname()[:2]):
        assert port_state(port) == PortState(open=1, waiting=1)
        accepted, _ = listener.accept()
        with accepted:
            assert port_state(port) == PortState(open=1, waiting=0)
    wait_until(lambda: port_state(port) == PortState(open=0, waiting=0))


def test_a_port_that_nobody_uses_has_no_state() -> None:
    """As where the system does not tell."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        assert port_state(bound.getsockname()[1]) is None


def test_who_takes_no_more_keeps_what_is_made(listener: socket.socket) -> None:
    """Connections that are made and not accepted come through; new ones are not even made. No file is left open."""
    place = listener.getsockname()[:2]
    with socket.create_connection(place) as made:
        before = open_files(os.getpid())
        take_no_more(place[1])
        assert open_files(os.getpid()) == before
        with pytest.raises(TimeoutError):
            socket.create_connection(place, REFUSED_AFTER_S)
        accepted, _ = listener.accept()
        with accepted:
            made.sendall(b"asked")
            assert accepted.recv(16) == b"asked"
            accepted.sendall(b"answered")
        assert made.recv(16) == b"answered"
    assert port_state(place[1]) in {PortState(open=0, waiting=0), None}
