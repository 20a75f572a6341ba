"""The port is one service's alone, also when several begin at the same moment."""

import socket
import threading
from contextlib import ExitStack

import pytest
from structlog.testing import capture_logs

from tarazu.service import serving
from tarazu.service.configuration import ServerSettings
from tarazu.service.serving import ServingError, _hold_port
from tests.support.service import free_port

ROUNDS = 100
STARTERS = 6


def test_of_many_that_take_a_port_at_once_one_gets_it() -> None:
    """However close together they are; when it has let go, the next one gets it."""
    server = ServerSettings(port=free_port())
    for _ in range(ROUNDS):
        start, taken, refused = threading.Barrier(STARTERS), ExitStack(), list[str]()

        def begin(start: threading.Barrier = start, taken: ExitStack = taken, refused: list[str] = refused) -> None:
            start.wait()
            try:
                taken.enter_context(_hold_port(server))
            except ServingError as error:
                refused.append(str(error))

        starters = [threading.Thread(target=begin) for _ in range(STARTERS)]
        with taken:
            for starter in starters:
                starter.start()
            for starter in starters:
                starter.join()
        assert len(refused) == STARTERS - 1
        assert "Address already in use" in refused[0]


def test_a_lock_that_another_holds_keeps_no_service_from_its_port(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is taken all the same, and the log says so."""
    monkeypatch.setattr(serving, "PORT_LOCK_TIMEOUT_S", 0.1)
    with socket.socket(socket.AF_UNIX) as squatter, capture_logs() as logs:
        squatter.bind(serving.PORT_LOCK)
        with _hold_port(ServerSettings(port=0)) as held:
            assert held.getsockname()[1] > 0
    assert [line["event"] for line in logs] == ["port_lock_not_had"]
