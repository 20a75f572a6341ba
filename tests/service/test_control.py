"""Commands reach the services of their configuration and user; a stranger under such a name reaches and stops none."""

import os
import socket
from contextlib import closing, suppress
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tarazu.service import control
from tarazu.service.control import (
    ANSWER_BYTES_MAX,
    Ask,
    Control,
    RunningService,
    Told,
    all_running_services,
    running_services,
)

RELOAD = Ask(act="reload")
ADDRESS = "http://127.0.0.1:18231"


def listening(configuration: Path | None, told: Told) -> list[Ask]:
    """Let a service of this configuration answer so; answer with what it is asked."""
    asked: list[Ask] = []

    def answer(ask: Ask) -> Told:
        asked.append(ask)
        return told

    Control(configuration, ADDRESS, answer).start()
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


def test_a_service_tells_the_address_that_its_callers_use(tmp_path: Path) -> None:
    """Without being asked for anything else; one that speaks of no address, as an older release, tells nothing."""
    asked = listening(tmp_path / "a.toml", Told())
    (service,) = running_services(tmp_path / "a.toml")
    with closing(service):
        assert (service.address(), asked) == (ADDRESS, [])
    here, there = socket.socketpair()
    older = RunningService(os.getpid(), here)
    with closing(older), closing(there):
        there.shutdown(socket.SHUT_WR)
        assert older.address() is None


def test_a_service_is_found_through_links(tmp_path: Path) -> None:
    """To the file or a folder above it, on either side; and by its own path still, once the link leads elsewhere."""
    real, other = tmp_path / "real", tmp_path / "other"
    for folder in (real, other):
        folder.mkdir()
        (folder / "tarazu.toml").touch()
    link, file_link = tmp_path / "link", tmp_path / "link.toml"
    link.symlink_to(real)
    file_link.symlink_to(real / "tarazu.toml")
    told = Told("linked")
    listening(link / "tarazu.toml", told)
    for path in (link / "tarazu.toml", real / "tarazu.toml", file_link, other / ".." / "link" / "tarazu.toml"):
        assert answers(path) == [told], path
    assert answers(other / "tarazu.toml") == []
    link.unlink()
    link.symlink_to(other)
    assert answers(link / "tarazu.toml") == [told]
    real_told = Told("real")
    listening(other / "tarazu.toml", real_told)
    (other / "tarazu.toml").unlink()
    assert answers(other / "tarazu.toml") == [real_told]


def test_all_services_tell_what_they_run_by(tmp_path: Path) -> None:
    """Each once, though it may have two names; one that does not answer tells nothing."""
    (tmp_path / "link").symlink_to(tmp_path)
    listening(tmp_path / "link" / "named.toml", Told())
    count = 0
    for service in all_running_services():  # also those of other tests
        with closing(service):
            if service.process_id == os.getpid():
                count += 1
                assert isinstance(service.configuration(), str)
                assert service.configuration() is None  # it answers once
    assert count == 1
    (found,) = running_services(tmp_path / "named.toml")
    with closing(found):
        assert found.configuration() == str(tmp_path / "link" / "named.toml")


def test_a_name_that_is_taken_keeps_nothing_from_starting(tmp_path: Path) -> None:
    """The service goes on without, and says so."""
    file = tmp_path / "tarazu.toml"
    with socket.socket(socket.AF_UNIX) as squatter, capture_logs() as logs:
        squatter.bind(f"\0{control._prefix(os.getuid(), str(file))}{os.getpid()}")
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
        stranger_asks.connect(f"\0{control._prefix(os.getuid(), str(file))}{os.getpid()}")
        assert stranger_asks.recv(1) == b""
    assert answers(file) == [Told("done")]
    assert asked == [RELOAD]


@pytest.mark.parametrize("question", [b"{}\n", b"nonsense\n", b"x" * 2_000, b'{"act":"delete"}\n'])
def test_what_is_no_question_is_not_answered(tmp_path: Path, question: bytes) -> None:
    """The connection is closed, and the next question is answered."""
    file = tmp_path / "tarazu.toml"
    asked = listening(file, Told("done"))
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(f"\0{control._prefix(os.getuid(), str(file))}{os.getpid()}")
        asking.sendall(question)
        asking.shutdown(socket.SHUT_WR)
        with suppress(ConnectionResetError):  # where the rest of it is not even read
            assert asking.recv(ANSWER_BYTES_MAX) == b""
    assert asked == []
    assert answers(file) == [Told("done")]
