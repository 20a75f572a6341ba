"""How commands reach the services of this machine that run by the same configuration: to reload, to drain, to link.

A service listens at a name that Linux keeps beside the files, so that nothing that is removed from a disk cuts it off.
The name holds the user, the configuration and the process: none is another's, and one that a stranger holds keeps
nothing from starting. Where links lead to the file it has a second name, of the file itself. Each end asks the kernel
who the other is.
"""

import hashlib
import os
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec
import structlog
from msgspec import Struct

ACCEPT_PAUSE_S = 1.0
ASK_TIMEOUT_S = 5.0
"""For the question, once someone has connected."""
ASK_BYTES_MAX = 1_024
ANSWER_BYTES_MAX = 1_048_576
BACKLOG = 16
DIGEST_CHARACTERS = 32
_SOCKETS = Path("/proc/net/unix")
_NAME = re.compile(rf"@tarazu/(\d+)/([0-9a-f]{{{DIGEST_CHARACTERS}}})/(\d+)$", re.ASCII)
_CREDENTIALS = struct.Struct("3i")

log = structlog.get_logger()


class Ask(Struct, frozen=True):
    """What a service is asked to do, by which configuration it runs, or at which address.

    A drain goes on answering for `for_s` seconds at most.
    """

    act: Literal["reload", "drain", "name", "address"]
    for_s: int = 0


class Told(Struct, frozen=True):
    """What came of it, a line each: what was done, what is to be noted, and the problems."""

    done: str = ""
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


class Control:
    """The service's end, from `start` on. `base_url` is the address that its callers use."""

    def __init__(self, configuration: Path | None, base_url: str, answer: Callable[[Ask], Told]) -> None:
        self._names = [f"{_prefix(os.getuid(), path)}{os.getpid()}" for path in _paths(configuration)]
        path = "" if configuration is None else os.path.abspath(configuration)  # noqa: PTH100 - as in _paths
        self._known = {"name": Told(path), "address": Told(base_url)}
        self._answer = answer

    def __repr__(self) -> str:
        return f"<Control {' '.join(self._names)}>"

    def start(self) -> None:
        """Begin to listen. Where that is not possible the log says so, and the service goes on without."""
        for name in self._names:
            listener = socket.socket(socket.AF_UNIX)
            try:
                listener.bind(f"\0{name}")
                listener.listen(BACKLOG)
            except OSError as error:
                listener.close()
                log.warning("commands_cannot_reach_it", reason=error.strerror, instead="send SIGHUP to reload")
                return
            threading.Thread(target=self._listen, args=(listener,), name="control", daemon=True).start()

    def _listen(self, listener: socket.socket) -> None:
        while True:
            try:
                asking, _ = listener.accept()
            except OSError:  # too few files may be open
                time.sleep(ACCEPT_PAUSE_S)
                continue
            if _user_of(asking) not in {0, os.getuid()}:
                asking.close()
                continue
            try:
                threading.Thread(target=self._serve, args=(asking,), name="control", daemon=True).start()
            except RuntimeError:  # no room for one more thread
                asking.close()

    def _serve(self, asking: socket.socket) -> None:
        """Answer one question. The connection stays open: its end is that of the service, for who waits for it."""
        try:
            asking.settimeout(ASK_TIMEOUT_S)
            ask = msgspec.json.decode(_line(asking, ASK_BYTES_MAX), type=Ask)
            told = self._known.get(ask.act) or self._answer(ask)
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

    def configuration(self) -> str | None:
        """Ask for the path of its configuration, which is empty for the built-in one; None where it says nothing."""
        return self._known(Ask(act="name"))

    def address(self) -> str | None:
        """Ask for the address that its callers use; None where it says nothing, as one of an older release."""
        return self._known(Ask(act="address"))

    def await_end(self) -> None:
        """Wait until the service has ended."""
        with suppress(OSError):
            self._connection.recv(1)

    def close(self) -> None:
        """Ask no more."""
        self._connection.close()

    def _known(self, ask: Ask) -> str | None:
        self._connection.settimeout(ASK_TIMEOUT_S)
        try:
            return self.ask(ask).done
        except (OSError, msgspec.MsgspecError):
            return None


def running_services(configuration: Path | None) -> Iterator[RunningService]:
    """Find the services that run by this configuration, of this user; root finds those of all users."""
    return _found({_digest(path) for path in _paths(configuration)})


def all_running_services() -> Iterator[RunningService]:
    """Find the services of this user, whatever they run by; root finds those of all users."""
    return _found(None)


def _found(digests: Collection[str] | None) -> Iterator[RunningService]:
    seen = set[int]()
    for user, digest, process_id in _names():
        if process_id in seen or os.geteuid() not in {0, user} or (digests is not None and digest not in digests):
            continue
        name = f"tarazu/{user}/{digest}/{process_id}"
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(f"\0{name}")
        except OSError:  # it has just ended
            connection.close()
            continue
        if _user_of(connection) == user:
            seen.add(process_id)
            yield RunningService(process_id, connection)
        else:  # a stranger under its name
            connection.close()


def _names() -> list[tuple[int, str, int]]:
    """List the names that services listen at: user, digest of the configuration, process."""
    if not _SOCKETS.exists():
        return []
    found = (_NAME.search(line) for line in _SOCKETS.read_text("utf-8", "replace").splitlines())
    return sorted({(int(name[1]), name[2], int(name[3])) for name in found if name is not None})


def _paths(configuration: Path | None) -> tuple[str, ...]:
    """Name a configuration by its path, the built-in one by the folder that it runs in; and by where links lead to.

    A link may lead elsewhere by the time that a service is looked for, so the path as it is written comes first.
    """
    written = configuration or ""
    return tuple(dict.fromkeys((os.path.abspath(written), os.path.realpath(written))))  # noqa: PTH100 - as above


def _prefix(user: int, path: str) -> str:
    return f"tarazu/{user}/{_digest(path)}/"


def _digest(path: str) -> str:
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
