"""Connections of one address: bounded, the newest cut first, whatever the address and however many there are."""

import socket
import struct
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from tarazu.service.crowds import CALM_S, LEAVING_S, SERVED_S, SHUT_S, Crowds, fair_bound
from tarazu.service.own_connections import Peer
from tests.support.patience import PATIENCE_S

COUNTS = st.dictionaries(st.text(max_size=3), st.integers(1, 10_000), max_size=20)


class Listening:
    """A port at which this process takes connections of itself, and the watch over them."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._socket = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        self.port: int = self._socket.getsockname()[1]
        self.taken: list[socket.socket] = []

    def connect(self, address: str, times: int, from_port: int = 0) -> list[socket.socket]:
        """Connect so many times from an address; answer with the clients' ends."""
        clients = [self.come(address, from_port) for _ in range(times)]
        self.take(times)
        return clients

    def come(self, address: str, from_port: int = 0, timeout_s: float = PATIENCE_S) -> socket.socket:
        """Connect, and wait to be taken."""
        server, source = ("127.0.0.1", self.port), (address, from_port)
        return self._stack.enter_context(socket.create_connection(server, timeout_s, source))

    def take(self, times: int = 1) -> None:
        """Take so many connections."""
        for _ in range(times):
            self.taken.append(self._stack.enter_context(self._socket.accept()[0]))

    def reset(self, newest: socket.socket) -> None:
        """End the newest connection at both ends, so that its port may be used at once."""
        newest.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        newest.close()
        self.taken[-1].close()

    def crowds(self, of_address: int, trusted: Sequence[str] = (), connections: int = 1_000) -> Crowds:
        """Make the watch."""
        return Crowds(self.port, connections=connections, of_address=of_address, trusted=trusted)


@contextmanager
def listening() -> Iterator[Listening]:
    """Listen while the block runs."""
    with ExitStack() as stack:
        yield Listening(stack)


def are_cut(clients: Sequence[socket.socket]) -> list[bool]:
    """Tell of each whether it has been cut off."""
    return [_is_cut(client) for client in clients]


def peer_of(client: socket.socket) -> tuple[str, str]:
    """Tell how the service names a client."""
    host, port = client.getsockname()
    return host, str(port)


def _is_cut(client: socket.socket) -> bool:
    client.settimeout(0)
    try:
        return client.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


def test_what_an_address_has_beyond_its_bound_is_cut_the_newest_first() -> None:
    """Who was there before a crowd of the same address stays, and other addresses lose nothing."""
    with listening() as port:
        crowds = port.crowds(of_address=5)
        before, others = port.connect("127.0.0.2", 3), port.connect("127.0.0.3", 5)
        assert crowds.look() == 0
        later = port.connect("127.0.0.2", 10)
        assert crowds.look() == 8
        assert not any(are_cut(before + others))
        assert are_cut(later).count(True) == 8


def test_those_that_were_cut_are_not_served() -> None:
    """What they have sent before, for a while: later another may have the port."""
    with listening() as port:
        crowds = port.crowds(of_address=2)
        clients = port.connect("127.0.0.2", 5)
        begin_s = time.monotonic()
        assert crowds.look() == 3
        cut = [peer_of(client) for client, is_cut in zip(clients, are_cut(clients), strict=True) if is_cut]
        assert sorted(crowds.unserved) == sorted(cut)
        assert peer_of(clients[0]) not in crowds.unserved
        crowds.unserved.forget(begin_s + SERVED_S - 1)
        assert sorted(crowds.unserved) == sorted(cut)
        crowds.unserved.forget(time.monotonic() + SERVED_S + 1)
        assert not crowds.unserved


def test_whoever_waits_for_a_completion_stays() -> None:
    """Others of the same address go in their place; one who begins to wait in that moment stays too."""
    with listening() as port:
        crowds = port.crowds(of_address=3)
        idle, asking = port.connect("127.0.0.2", 3), port.connect("127.0.0.2", 2)
        crowds.asking[peer_of(asking[0])] = crowds

        def joins(peers: Iterable[Peer], now_s: float) -> None:
            crowds.asking[peer_of(asking[1])] = crowds
            dict.update(crowds.unserved, dict.fromkeys(peers, now_s))

        with patch.object(crowds.unserved, "add", joins):
            for _ in range(2):
                crowds.look()
        assert not any(are_cut(asking))
        assert are_cut(idle).count(True) == 2
        assert not crowds.unserved.keys() & {peer_of(each) for each in asking}


def test_a_crowd_that_only_asks_is_left_alone() -> None:
    """Nobody is cut off, and nothing is said."""
    with listening() as port, capture_logs() as logged:
        crowds = port.crowds(of_address=2)
        crowds.asking.update(dict.fromkeys(map(peer_of, port.connect("127.0.0.2", 5))))
        assert crowds.look() == 0
        assert not crowds.unserved
    assert logged == []


@pytest.mark.parametrize(("of_crowd", "is_flood"), [(3, False), (4, False), (5, True)])
def test_whoever_joins_a_flood_is_not_served(of_crowd: int, is_flood: bool) -> None:  # noqa: FBT001 - a case
    """Until the next look; a little more than the bound is no flood, and where few are left whoever comes is served."""
    with listening() as port:
        crowds = port.crowds(of_address=2)
        port.connect("127.0.0.2", of_crowd)
        later, other = port.come("127.0.0.2"), port.come("127.0.0.3")
        assert crowds.look() == of_crowd - 2
        port.take(2)
        assert (peer_of(later) in crowds.unserved) is is_flood
        assert peer_of(other) not in crowds.unserved
        crowds.turn(0, time.monotonic())
        assert peer_of(later) not in crowds.unserved


def test_from_the_address_of_a_crowd_none_are_made_for_a_while() -> None:
    """A crowd that comes faster than it is cut off takes the others' time. They are heard, and later the crowd too."""
    with listening() as port:
        crowds = port.crowds(of_address=2)
        port.connect("127.0.0.2", 2)
        assert crowds.look() == 0
        port.connect("127.0.0.2", 1)
        now_s = time.monotonic()
        assert crowds.look() == 1
        crowds.turn(0, now_s + SHUT_S / 2)
        with pytest.raises(TimeoutError):
            port.come("127.0.0.2", timeout_s=SHUT_S / 4)
        port.connect("127.0.0.3", 1)
        crowds.turn(0, time.monotonic() + SHUT_S)
        port.connect("127.0.0.2", 1)


def test_a_network_with_a_trusted_proxy_in_it_is_not_shut_out() -> None:
    """A crowd of its neighbours is cut off as any other."""
    crowds = Crowds(1, connections=8, of_address=8, trusted=["2001:db8:0:1::9", "10.0.0.0/8"])
    with patch("tarazu.service.crowds.shut_out", return_value=True) as shut_out:
        crowds._shut_out(["2001:db8:0:1::/64", "2001:db8:0:2::/64", "192.0.2.7"], 1.0)
    assert list(shut_out.call_args.args[1]) == ["2001:db8:0:2::/64", "192.0.2.7"]


def test_letting_in_again_is_tried_until_it_is_done() -> None:
    """Where the system has no memory for a filter just then nobody stays shut out for that."""
    crowds = Crowds(1, connections=8, of_address=8, trusted=[])
    with patch("tarazu.service.crowds.shut_out", side_effect=[True, False, True]) as shut_out:
        crowds._shut_out(["192.0.2.7"], 1.0)
        for now_s in (1.0 + SHUT_S / 2, 1.0 + SHUT_S, 2.0 + SHUT_S, 3.0 + SHUT_S):
            crowds.turn(0, now_s)
    assert [list(call.args[1]) for call in shut_out.call_args_list] == [["192.0.2.7"], [], []]


def test_there_is_no_calm_while_a_crowd_is_found() -> None:
    """However few are in use by then: what was let go of it must be seen, or its address is passed over for longer."""
    with listening() as port:
        crowds = port.crowds(of_address=2)
        crowds.turn(100, 1.0)
        port.connect("127.0.0.2", 6)
        later = port.come("127.0.0.2")
        crowds.turn(200, 1.1)
        port.take()
        assert peer_of(later) in crowds.unserved
        for taken in port.taken[:-1]:
            taken.close()
        crowds.turn(50, 1.2)
        assert peer_of(later) not in crowds.unserved


def test_whoever_was_told_to_go_and_stays_is_cut_off() -> None:
    """After a while in which an answer can be read; others stay, and so does who comes from there later."""
    with listening() as port:
        crowds = port.crowds(of_address=100)
        [leaving], others = port.connect("127.0.0.2", 1), port.connect("127.0.0.2", 3)
        begin_s = time.monotonic()
        crowds.see_off(peer_of(leaving))
        crowds.turn(1, begin_s + LEAVING_S / 2)
        assert not _is_cut(leaving)
        crowds.turn(1, time.monotonic() + LEAVING_S)
        assert _is_cut(leaving)
        assert not any(are_cut(others))


@pytest.mark.parametrize("is_seen_gone", [True, False])
def test_whoever_comes_from_the_port_of_one_that_has_gone_stays(is_seen_gone: bool) -> None:  # noqa: FBT001 - a case
    """Once it was seen that the other has gone; and in any case who waits for a completion."""
    with listening() as port:
        crowds = port.crowds(of_address=100)
        [leaving] = port.connect("127.0.0.2", 1)
        peer = peer_of(leaving)
        crowds.see_off(peer)
        port.reset(leaving)
        if is_seen_gone:
            crowds.turn(1, time.monotonic())
        [another] = port.connect("127.0.0.2", 1, from_port=int(peer[1]))
        if not is_seen_gone:
            crowds.asking[peer] = another
        crowds.turn(1, time.monotonic() + LEAVING_S)
        crowds.asking.clear()
        crowds.turn(1, time.monotonic() + 2 * LEAVING_S)
        assert not _is_cut(another)


def test_the_watch_goes_on_after_an_error() -> None:
    """It says so, and looks again."""
    with listening() as port, capture_logs() as logged:
        crowds = port.crowds(of_address=2)
        seen = threading.Event()
        outcomes = iter([OSError(24, "Too many open files")])

        def turn(_in_use: int, _now_s: float) -> None:
            for outcome in outcomes:
                raise outcome
            seen.set()
            threading.Event().wait()  # it looks no more

        with patch.object(crowds, "turn", turn), patch("tarazu.service.crowds.TOLD_EVERY_S", 0.0):
            crowds.start()
            assert seen.wait(PATIENCE_S)
    assert [line["event"] for line in logged] == ["connections_not_watched"]


def test_it_is_looked_at_only_where_there_may_be_a_crowd() -> None:
    """Not while few are in use; where many are and no crowd, only when more have come, or after a while."""
    with listening() as port:
        crowds = port.crowds(of_address=8)
        port.connect("127.0.0.2", 4)
        with patch.object(crowds, "look", wraps=crowds.look) as look:
            for in_use in (7, 8, 8, 9):
                crowds.turn(in_use, 1.0)
            assert look.call_count == 1
            crowds.turn(10, 1.0)
            crowds.turn(10, 1.0 + 2 * CALM_S)
            assert look.call_count == 3
            port.connect("127.0.0.2", 8)
            for _ in range(2):
                crowds.turn(20, 30.0)
            assert look.call_count == 5


@pytest.mark.parametrize("network", ["127.0.0.2", "127.0.0.0/8", "127.0.0.9/24"])
def test_a_trusted_proxy_may_have_any_number(network: str) -> None:
    """Behind it are many callers."""
    with listening() as port:
        clients = port.connect("127.0.0.2", 20)
        assert port.crowds(of_address=2, trusted=["::1", network]).look() == 0
        assert not any(are_cut(clients))


def test_many_addresses_leave_room_for_others() -> None:
    """Where all together would fill the worker each gives way, down to what fits; a trusted one gives nothing."""
    with listening() as port:
        crowd = [client for last in range(2, 12) for client in port.connect(f"127.0.0.{last}", 8)]
        proxy = port.connect("127.0.1.1", 20)
        crowds = port.crowds(of_address=8, trusted=["127.0.1.0/24"], connections=64)
        assert crowds.look() == 30
        assert not any(are_cut(proxy))
        assert are_cut(crowd).count(False) == 50


@given(counts=COUNTS, of_address=st.integers(1, 5_000), room=st.integers(1, 10_000))
def test_the_bound_is_the_addresss_own_or_what_fits(counts: dict[str, int], of_address: int, room: int) -> None:
    """Never above what one may have, never below one; what is left fits, unless there are more addresses than room."""
    bound = fair_bound(counts, of_address, room)
    assert 1 <= bound <= of_address
    left = sum(min(count, bound) for count in counts.values())
    assert left <= room or bound == 1
    assert bound == of_address or sum(min(count, bound + 1) for count in counts.values()) > room


@pytest.mark.parametrize(
    ("host", "owner"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:10.0.0.1", None),
        ("fd00::7", None),
    ],
)
def test_whose_a_connection_is(host: str, owner: str | None) -> None:
    """An address of IPv6 stands for its network of 64 bits; one of IPv4 is itself in either form."""
    assert Crowds(1, connections=8, of_address=8, trusted=["10.0.0.0/8", "fd00::/8"])._owner(host) == owner
