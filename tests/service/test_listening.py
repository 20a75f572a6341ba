"""The socket of a worker, and how many open files it has for what."""

import resource
import select
import socket
import time
from collections.abc import Iterator

import pytest
import structlog
from granian._granian import ListenerSpec
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tarazu.service import listening
from tarazu.service.configuration import ServerSettings
from tarazu.service.listening import CONNECTIONS_MAX, OPEN_FILES_KEPT, TooFewFilesError, fitted, room_in
from tests.support.patience import PATIENCE_S

SHORT_S = 1


@pytest.fixture
def limit_of_files() -> Iterator[None]:
    """Let the test change the limit of open files."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize("reads", [False, True], ids=["reads nothing", "reads a few bytes now and then"])
def test_a_connection_whose_client_does_not_read_ends(*, reads: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system ends it, with what waits to be sent, for each connection that such a socket takes."""
    monkeypatch.setattr(listening, "UNREAD_TIMEOUT_S", SHORT_S)
    holder = ListenerSpec("127.0.0.1", 0, 16).build()
    listening._end_unread(holder)
    with socket.socket(fileno=holder.get_fd()) as server, socket.socket() as client:
        server.listen()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_048)
        client.connect(server.getsockname())
        with server.accept()[0] as taken:
            taken.settimeout(0)
            taken.send(b"x" * 10_000_000)
            until_s = time.monotonic() + PATIENCE_S
            error = 0
            while not error and time.monotonic() < until_s:
                if reads:
                    client.recv(16)
                select.select([taken], [], [], SHORT_S / 4)
                error = taken.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            assert error


@given(limit=st.integers(0, 100_000), max_in_flight=st.integers(1, 10**9))
def test_what_is_promised_fits_the_limit(limit: int, max_in_flight: int) -> None:
    """Each completion has its caller's connection and one to a backend; what is kept for the rest is left."""
    room = room_in(limit, max_in_flight)
    assert room.max_in_flight <= max_in_flight
    assert room.max_in_flight <= room.connections <= CONNECTIONS_MAX or room.max_in_flight > CONNECTIONS_MAX
    assert room.connections + room.max_in_flight <= max(0, limit - OPEN_FILES_KEPT)


@pytest.mark.usefixtures("limit_of_files")
def test_the_limit_of_open_files_is_raised_as_far_as_it_goes() -> None:
    """The soft limit becomes the hard one, and nothing is said where everything fits."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard < 10_000:
        pytest.skip("the limit of open files of this machine is below 10,000")
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, hard))
    with structlog.testing.capture_logs() as told:
        server, connections = fitted(ServerSettings())
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
    assert (server, connections, told) == (ServerSettings(), CONNECTIONS_MAX, [])


def test_what_does_not_fit_is_made_smaller_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 256 open files 64 completions are carried at once, and the log says so; with 130 it does not start."""
    monkeypatch.setattr(listening, "_raised_limit", lambda: 256)
    with structlog.testing.capture_logs() as told:
        server, connections = fitted(ServerSettings())
    assert server == replace(ServerSettings(), max_in_flight=64)
    assert connections == 64
    [line] = told
    assert line["event"] == "open_files_limited"
    assert "ulimit -n" in line["advice"]
    monkeypatch.setattr(listening, "_raised_limit", lambda: 130)
    with pytest.raises(TooFewFilesError, match="130 files here, and needs 144"):
        fitted(ServerSettings())
