"""The connections of a port are counted."""

import socket

import pytest

from tarazu.service.connections import PortState, port_state
from tests.support.at_once import wait_until
from tests.support.listening import listening


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_what_is_open_and_what_waits_are_counted(host: str) -> None:
    """From the side that listens; what is closed counts no longer."""
    with listening(host) as listener:
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
