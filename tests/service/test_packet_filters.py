"""A socket that takes no more loses none of those that are made; whoever is shut out from one hears nothing."""

import os
import socket

import pytest

from tarazu.service.connections import PortState, port_state
from tarazu.service.packet_filters import SHUT_OUT_MAX, shut_out, take_no_more
from tests.support.listening import listening
from tests.support.processes import open_files

REFUSED_AFTER_S = 0.3
"""Who connects in vain hears nothing: it is enough to see that for a moment."""


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_who_takes_no_more_keeps_what_is_made(host: str) -> None:
    """Connections that are made and not accepted come through; new ones are not even made. No file is left open."""
    with listening(host) as listener:
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


@pytest.mark.parametrize(
    ("listens", "owners", "shut", "heard"),
    [
        ("127.0.0.1", ["127.0.0.2", "127.0.0.4"], ["127.0.0.2", "127.0.0.4"], ["127.0.0.1", "127.0.0.3"]),
        ("127.0.0.1", ["::/64", "127.0.0.2"], ["127.0.0.2"], ["127.0.0.1"]),
        ("::1", ["127.0.0.1", "2001:db8::/64", "::/64"], ["::1"], []),
        ("::1", ["127.0.0.1", "::1:0:0:0:0/64", "1::/64"], [], ["::1"]),
        ("::", ["127.0.0.2"], ["127.0.0.2"], ["::1", "127.0.0.1"]),
        ("::", ["::/64"], ["::1"], ["127.0.0.1", "127.0.0.2"]),
    ],
)
def test_who_is_shut_out_hears_nothing(listens: str, owners: list[str], shut: list[str], heard: list[str]) -> None:
    """Nobody else notices, and what is made stays. With nobody shut out all are heard again."""
    with listening(listens) as listener:
        listeners = [listener.fileno(), os.open(os.devnull, os.O_RDONLY)]
        for _ in range(2):
            shut_out(listeners, owners)
            assert {client: _is_heard(listener, client) for client in [*shut, *heard]} == {
                **dict.fromkeys(shut, False),
                **dict.fromkeys(heard, True),
            }
            shut_out(listeners, [])
            assert all(_is_heard(listener, client) for client in [*shut, *heard])
        take_no_more(listener.getsockname()[1])
        shut_out(listeners, [])
        assert not any(_is_heard(listener, client) for client in [*shut, *heard])
        os.close(listeners[1])


def test_as_many_are_shut_out_as_a_filter_takes() -> None:
    """The first ones; that there are more of them fails nothing."""
    with listening("127.0.0.1") as listener:
        others = [f"2001:db8:{number:x}::/64" for number in range(SHUT_OUT_MAX)]
        shut_out([listener.fileno()], [*others[1:], "127.0.0.2", "127.0.0.3"])
        assert not _is_heard(listener, "127.0.0.2")
        assert _is_heard(listener, "127.0.0.3")


def _is_heard(listener: socket.socket, client: str) -> bool:
    """Connect from an address, to the same or to the other of its kind."""
    server = "::1" if ":" in client else "127.0.0.1"
    try:
        socket.create_connection((server, listener.getsockname()[1]), REFUSED_AFTER_S, (client, 0)).close()
    except TimeoutError:
        return False
    return True
