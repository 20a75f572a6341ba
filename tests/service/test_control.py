"""Commands reach the services of their configuration and user; a stranger under such a name reaches and stops none."""

import os
import socket
from contextlib import closing, suppress
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tarazu.service import control
from tarazu.service.control import ANSWER_BYTES_MAX, Ask, Control, Told, running_services

RELOAD = Ask(act="reload")


def listening(configuration: Path | None, told: Told) -> list[Ask]:
    """Let a service of this configuration answer so; answer with what it is asked."""
    asked: list[Ask] = []

    def answer(ask: Ask) -> Told:
        asked.append(ask)
        return told

    Control(configuration, answer).start()
    return asked


def answers(configuration: Path | None, ask: Ask = RELOAD) -> list[Told]:
    """Ask all services of this configuration."""
    told: list[Told] = []
    for service in running_services(configuration):
        with closing(service):
            told.append(service.ask(ask))
    return told


def test_a_service_is_found_by_its_configuration_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the path of the file, however it is written, or by the folder in which the demo runs."""
    told = Told("done", ("noted",), ("problem",))
    asked = listening(tmp_path / "a.toml", told)
    monkeypatch.chdir(tmp_path)
    assert answers(Path("a.toml"), Ask(act="drain", for_s=7)) == [told]
    assert asked == [Ask(act="drain", for_s=7)]
    assert list(running_services(Path("b.toml"))) == []
    assert list(running_services(None)) == []
    listening(None, Told("demo"))
    assert answers(None) == [Told("demo")]


def test_a_name_that_is_taken_keeps_nothing_from_starting(tmp_path: Path) -> None:
    """The service goes on without, and says so."""
    file = tmp_path / "tarazu.toml"
    with socket.socket(socket.AF_UNIX) as squatter, capture_logs() as logs:
        squatter.bind(f"\0{control._prefix(os.getuid(), file)}{os.getpid()}")
        listening(file, Told())
    assert [line["event"] for line in logs] == ["commands_cannot_reach_it"]


def test_a_stranger_is_neither_asked_nor_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each end heeds what the kernel says of the user at the other, not what its name says."""
    file = tmp_path / "tarazu.toml"
    asked = listening(file, Told("done"))
    stranger = os.getuid() + 1
    with monkeypatch.context() as strange, socket.socket(socket.AF_UNIX) as stranger_asks:
        strange.setattr(control, "_user_of", lambda _connection: stranger)
        assert answers(file) == []
        stranger_asks.connect(f"\0{control._prefix(os.getuid(), file)}{os.getpid()}")
        assert stranger_asks.recv(1) == b""
    assert answers(file) == [Told("done")]
    assert asked == [RELOAD]


@pytest.mark.parametrize("question", [b"{}\n", b"nonsense\n", b"x" * 2_000, b'{"act":"delete"}\n'])
def test_what_is_no_question_is_not_answered(tmp_path: Path, question: bytes) -> None:
    """The connection is closed, and the next question is answered."""
    file = tmp_path / "tarazu.toml"
    asked = listening(file, Told("done"))
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(f"\0{control._prefix(os.getuid(), file)}{os.getpid()}")
        asking.sendall(question)
        asking.shutdown(socket.SHUT_WR)
        with suppress(ConnectionResetError):  # where the rest of it is not even read
            assert asking.recv(ANSWER_BYTES_MAX) == b""
    assert asked == []
    assert answers(file) == [Told("done")]
