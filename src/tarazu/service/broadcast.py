"""Hand the newest setup from the parent process to all its workers, to those that start later too."""

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from typing import Any

import structlog
from msgspec import Struct

SECRET_BYTES = 32
BACKLOG = 256
"""As many workers as there may be."""
ANSWER_TIMEOUT_S = 10.0

log = structlog.get_logger()


class Channel(Struct, frozen=True):
    """Where a worker hears of new setups, and the secret that lets it in."""

    address: str
    secret: bytes

    def __repr__(self) -> str:
        """Name the address without the secret."""
        return f"Channel({self.address})"


class Broadcast:
    """The parent's end: a socket of this machine and user alone."""

    def __init__(self) -> None:
        secret = os.urandom(SECRET_BYTES)
        self._listener = Listener(family="AF_UNIX", backlog=BACKLOG, authkey=secret)
        self.channel = Channel(str(self._listener.address), secret)
        self._workers: list[Connection[Any, Any]] = []
        self._newest: object = None
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<Broadcast to {len(self._workers)} workers>"

    def start(self, newest: object) -> None:
        """Begin to let workers in; each is told the newest at once."""
        self._newest = newest
        threading.Thread(target=self._let_in, name="broadcast", daemon=True).start()

    def publish(self, newest: object) -> int:
        """Tell all workers, and wait until they have taken it; answer with how many have."""
        with self._lock:
            self._newest = newest
            self._workers = [worker for worker in self._workers if _told(worker, newest)]
            return len(self._workers)

    def close(self) -> None:
        """Let nobody in any more."""
        self._listener.close()

    def _let_in(self) -> None:
        while True:
            try:
                worker = self._listener.accept()
            except (AuthenticationError, EOFError, ConnectionError):  # that was no worker, or it has died
                continue
            except OSError:  # closed
                return
            with self._lock:
                if _told(worker, self._newest):
                    self._workers.append(worker)


def follow(channel: Channel, take: Callable[[Any], None]) -> None:
    """Have each new setup taken, in a worker's thread of its own, until the parent ends."""
    with suppress(EOFError, OSError, AuthenticationError), Client(channel.address, authkey=channel.secret) as parent:
        while True:
            take(parent.recv())
            parent.send(None)


def _told(worker: "Connection[Any, Any]", newest: object) -> bool:
    try:
        worker.send(newest)
        if worker.poll(ANSWER_TIMEOUT_S):
            worker.recv()
            return True
        log.error("worker_has_not_reloaded", waited_s=ANSWER_TIMEOUT_S)
    except (EOFError, OSError):  # it has ended
        pass
    worker.close()
    return False
