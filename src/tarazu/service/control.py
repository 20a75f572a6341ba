"""How commands reach the services of this machine that run by the same configuration: to reload, and to drain.

A service listens at a name that Linux keeps beside the files, so that nothing that is removed from a disk cuts it off.
The name holds the user, the configuration and the process: none is another's, and one that a stranger holds keeps
nothing from starting. Each end asks the kernel who the other is.
"""

import hashlib
import os
import re
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec
import structlog
from msgspec import Struct

ASK_TIMEOUT_S = 5.0
"""For the question, once someone has connected."""
ASK_BYTES_MAX = 1_024
ANSWER_BYTES_MAX = 1_048_576
BACKLOG = 16
DIGEST_CHARACTERS = 32
_SOCKETS = Path("/proc/net/unix")
_CREDENTIALS = struct.Struct("3i")

log = structlog.get_logger()


class Ask(Struct, frozen=True):
    """What a service is asked to do. A drain goes on answering for `for_s` seconds at most."""

    act: Literal["reload", "drain"]
    for_s: int = 0


class Told(Struct, frozen=True):
    """What came of it, a line each: what was done, what is to be noted, and the problems."""

    done: str = ""
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


class Control:
    """The service's end, from `start` on."""

    def __init__(self, configuration: Path | None, answer: Callable[[Ask], Told]) -> None:
        self._name = f"{_prefix(os.getuid(), configuration)}{os.getpid()}"
        self._answer = answer

    def __repr__(self) -> str:
        return f"<Control {self._name}>"

    def start(self) -> None:
        """Begin to listen. Where that is not possible the log says so, and the service goes on without."""
        listener = socket.socket(socket.AF_UNIX)
        try:
            listener.bind(f"\0{self._name}")
            listener.listen(BACKLOG)
        except OSError as error:
            listener.close()
            log.warning("commands_cannot_reach_it", reason=error.strerror, instead="send SIGHUP to reload")
            return
        threading.Thread(target=self._listen, args=(listener,), name="control", daemon=True).start()

    def _listen(self, listener: socket.socket) -> None:
        while True:
            asking, _ = listener.accept()
            if _user_of(asking) in {0, os.getuid()}:
                threading.Thread(target=self._serve, args=(asking,), name="control", daemon=True).start()
            else:
                asking.close()

    def _serve(self, asking: socket.socket) -> None:
        """Answer one question. The connection stays open: its end is that of the service, for who waits for it."""
        try:
            asking.settimeout(ASK_TIMEOUT_S)
            told = self._answer(msgspec.json.decode(_line(asking, ASK_BYTES_MAX), type=Ask))
            asking.sendall(msgspec.json.encode(told) + b"\n")
            asking.settimeout(None)
            asking.recv(1)
        except (OSError, msgspec.MsgspecError):
            pass  # who has asked has gone, or asks for what is not known
        finally:
            asking.close()


class RunningService:
    """The command's end: one running service."""

    def __init__(self, process_id: int, connection: socket.socket) -> None:
        self.process_id = process_id
        self._connection = connection

    def __repr__(self) -> str:
        return f"<RunningService {self.process_id}>"

    def ask(self, ask: Ask) -> Told:
        """Ask, and wait for the answer for as long as it takes.

        Raises:
            OSError: the service has ended meanwhile.
        """
        self._connection.sendall(msgspec.json.encode(ask) + b"\n")
        return msgspec.json.decode(_line(self._connection, ANSWER_BYTES_MAX), type=Told)

    def await_end(self) -> None:
        """Wait until the service has ended."""
        with suppress(OSError):
            self._connection.recv(1)

    def close(self) -> None:
        """Ask no more."""
        self._connection.close()


def running_services(configuration: Path | None) -> Iterator[RunningService]:
    """Find the services that run by this configuration, of this user; root finds those of all users."""
    for name in _names(configuration):
        user, process_id = int(name.split("/")[1]), int(name.rpartition("/")[2])
        if os.geteuid() not in {0, user}:
            continue
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(f"\0{name}")
        except OSError:  # it has just ended
            connection.close()
            continue
        if _user_of(connection) == user:
            yield RunningService(process_id, connection)
        else:  # a stranger under its name
            connection.close()


def _names(configuration: Path | None) -> list[str]:
    if not _SOCKETS.exists():
        return []
    pattern = re.compile(rf"@(tarazu/\d+/{_digest(configuration)}/\d+)$", re.ASCII)
    found = (pattern.search(line) for line in _SOCKETS.read_text("utf-8", "replace").splitlines())
    return sorted({name[1] for name in found if name is not None})


def _prefix(user: int, configuration: Path | None) -> str:
    return f"tarazu/{user}/{_digest(configuration)}/"


def _digest(configuration: Path | None) -> str:
    """Name a configuration by its path, the built-in one by the folder that it runs in."""
    path = os.path.abspath(configuration or "")  # noqa: PTH100 - a link may lead elsewhere by then
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:DIGEST_CHARACTERS]


def _user_of(connection: socket.socket) -> int:
    _, user, _ = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return int(user)


def _line(connection: socket.socket, bytes_max: int) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        part = connection.recv(min(bytes_max - len(line), 65_536))
        if not part:
            raise ConnectionResetError("the other end has gone, or says too much")
        line += part
    return line
