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
        """Tell all workers, and wait until they have answered; tell how many have taken it."""
        with self._lock:
            self._newest = newest
            answers = [(worker, _tell(worker, newest)) for worker in self._workers]
            self._workers = [worker for worker, answer in answers if answer is not None]
            return sum(answer is True for _, answer in answers)

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
                if _tell(worker, self._newest) is not None:
                    self._workers.append(worker)


def follow(channel: Channel, take: Callable[[Any], bool]) -> None:
    """Have each new setup taken, in a worker's thread of its own, until the parent ends. `take` tells whether it was.

    A worker that was too slow to answer has been let go. It comes again, and is told the newest.
    """
    with suppress(EOFError, OSError, AuthenticationError):  # nobody listens any more
        while True:
            parent = Client(channel.address, authkey=channel.secret)
            with parent, suppress(EOFError, OSError):
                while True:
                    parent.send(take(parent.recv()))


def _tell(worker: "Connection[Any, Any]", newest: object) -> bool | None:
    """Tell a worker, and answer with whether it has taken it; let go one that does not answer: None."""
    try:
        worker.send(newest)
        if worker.poll(ANSWER_TIMEOUT_S):
            return bool(worker.recv())
        log.error("worker_has_not_reloaded", waited_s=ANSWER_TIMEOUT_S)
    except (EOFError, OSError):  # it has ended
        pass
    worker.close()
    return None
