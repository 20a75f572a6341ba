"""A TCP proxy before PostgreSQL that cuts connections in the middle of a commit, or lets all of them hang."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from sqlalchemy import make_url

from tests.support.patience import PATIENCE_S

COMMIT = b"COMMIT"
CHUNK = 65_536
BACKLOG = 64


class Cut(Enum):
    """Where a commit is cut, as seen from the client: it never hears of it."""

    BEFORE = "before"
    """The server does not get it: nothing is committed."""
    AMIDST = "amidst"
    """It is sent and the connection ends at once: the commit happens or not."""
    AFTER = "after"
    """The server has answered, and the answer is lost: it is committed."""


class CuttingProxy:
    """The proxy, on a free port of 127.0.0.1. `cuts` counts the commits that were cut."""

    def __init__(self, server_socket: Path) -> None:
        self.cuts = 0
        self._server_socket = server_socket
        self._next: Cut | None = None
        self._lock = threading.Lock()
        self._was_cut = threading.Event()
        self._flows = threading.Event()
        self._flows.set()
        self._sockets: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=BACKLOG)
        self._start(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._flows.set()
        with self._lock:
            sockets = list(self._sockets)
        for each in sockets:
            _end(each)
        for thread in self._threads:
            thread.join(PATIENCE_S)

    def url(self, server_url: str) -> str:
        """Turn the URL of a database on the server into the one that leads through the proxy."""
        port = self._listener.getsockname()[1]
        url = make_url(server_url).set(host="127.0.0.1", port=port, query={})
        return url.render_as_string(hide_password=False)

    def cut_next_commit(self, cut: Cut) -> None:
        """Cut the next commit that comes, on any connection."""
        self._was_cut.clear()
        with self._lock:
            self._next = cut

    def wait_for_cut(self) -> None:
        """Wait until the commit asked for has been cut."""
        assert self._was_cut.wait(PATIENCE_S), "nothing was committed"

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """Pass nothing on while the block runs: neither side hears of it. What was kept back goes on afterwards."""
        self._flows.clear()
        try:
            yield
        finally:
            self._flows.set()

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                self._start(partial(self._serve, client))

    def _start(self, target: Callable[[], None]) -> None:
        thread = threading.Thread(target=target, name="proxy", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _serve(self, client: socket.socket) -> None:
        server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with client, server, suppress(OSError):
            server.connect(str(self._server_socket))
            with self._lock:
                self._sockets |= {client, server}
            is_silent = threading.Event()
            answered = threading.Event()
            back = threading.Thread(target=self._pass_back, args=(server, client, is_silent, answered), daemon=True)
            back.start()
            try:
                self._pass_on(client, server, is_silent, answered)
            finally:
                _end(server)
                _end(client)
                back.join(PATIENCE_S)
                with self._lock:
                    self._sockets -= {client, server}

    def _pass_on(
        self, client: socket.socket, server: socket.socket, is_silent: threading.Event, answered: threading.Event
    ) -> None:
        """Pass on what the client sends until it ends or a commit is cut."""
        while data := client.recv(CHUNK):
            self._flows.wait()
            cut = self._take_cut() if COMMIT in data else None
            if cut is None:
                server.sendall(data)
                continue
            if cut is not Cut.BEFORE:
                answered.clear()
                is_silent.set()
                server.sendall(data)
            if cut is Cut.AFTER:
                assert answered.wait(PATIENCE_S)
            self._was_cut.set()
            return

    def _pass_back(
        self, server: socket.socket, client: socket.socket, is_silent: threading.Event, answered: threading.Event
    ) -> None:
        with suppress(OSError):
            while data := server.recv(CHUNK):
                self._flows.wait()
                if is_silent.is_set():
                    answered.set()
                else:
                    client.sendall(data)
        _end(client)

    def _take_cut(self) -> Cut | None:
        with self._lock:
            cut, self._next = self._next, None
            self.cuts += cut is not None
        return cut


def _end(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
