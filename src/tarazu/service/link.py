"""A worker's connection to its parent: what it is to serve by comes, and the beats and answers of the worker go.

The two ends are a pair of sockets without a name, made before the worker: nobody else can come between, and nothing
that is removed from a disk cuts it.
"""

import asyncio
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from multiprocessing.connection import Connection
from typing import Any

import structlog
from msgspec import Struct

from tarazu.service.pulse import BEAT_S

BEAT = b"\0\0\0\0"
"""A message of no bytes, as a Connection writes it."""
LOAD_TIMEOUT_S = 120.0
"""A worker that takes longer from its first moment to its event loop counts as one that hangs."""

log = structlog.get_logger()


class Stage(Enum):
    """What a worker does with connections."""

    SERVING = "serving"
    DRAINING = "draining"
    """Each answer closes its connection, and tells so."""
    LEAVING = "leaving"
    """No connection is taken any more either."""


class Order(Struct, frozen=True):
    """What a worker is to do from now on: serve by `setup`, in this stage. Later orders have larger numbers."""

    number: int
    setup: Any
    stage: Stage


class Answer(Struct, frozen=True):
    """Tells that the worker now does as the order of this number says; or goes on as before, when it could not."""

    number: int
    is_done: bool


class Link:
    """The worker's end."""

    def __init__(self, connection: "Connection[Any, Any]", on_parent_end: Callable[[], None]) -> None:
        """Take the connection; `on_parent_end` is called, in a thread, when the parent is no more."""
        self._connection = connection
        self._on_parent_end = on_parent_end
        self._loop: asyncio.AbstractEventLoop | None = None
        self._until_s = time.monotonic() + LOAD_TIMEOUT_S
        self._lock = threading.Lock()
        self._answered = 0

    def __repr__(self) -> str:
        return f"<Link, order {self._answered} done>"

    @property
    def newest_number(self) -> int:
        """The number of the last order that has come."""
        return self._order.number

    def begin(self) -> Any:
        """Wait for the first order, and follow from then on, in a thread; answer with what to serve by.

        Raises:
            SystemExit: the parent is no more, or has given this worker up before it was there.
        """
        try:
            self._order: Order = self._connection.recv()
        except (EOFError, OSError):
            sys.exit(0)
        self.beat()
        threading.Thread(target=self._run, name="parent", daemon=True).start()
        return self._order.setup

    def follow(self, take: Callable[[Order], None]) -> None:
        """Have the newest order done now, and each that follows, in the running event loop.

        Whatever `take` raises, the worker goes on as before, and the parent is told.
        """
        with self._lock:
            self._take = take
            self._loop = asyncio.get_running_loop()
            order = self._order
        self._obey(order)

    def beat(self) -> None:
        """Tell the parent that this process lives. Nobody waits where it does not listen."""
        end = socket.socket(fileno=self._connection.fileno())
        try:
            with suppress(OSError):
                end.send(BEAT, socket.MSG_DONTWAIT)
        finally:
            end.detach()

    def _run(self) -> None:
        with suppress(EOFError, OSError):
            while True:
                if self._connection.poll(BEAT_S):
                    self._hear(self._connection.recv())
                elif self._loop is None and time.monotonic() < self._until_s:
                    self.beat()
        self._on_parent_end()

    def _hear(self, order: Order) -> None:
        with self._lock:
            if order.number < self._order.number:
                return
            self._order = order
            loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(self._obey, order)

    def _obey(self, order: Order) -> None:
        if order.number <= self._answered:
            return
        self._answered = order.number
        try:
            self._take(order)
            is_done = True
        except Exception as error:  # noqa: BLE001 - the worker serves on as it did, and hears of the next one
            log.error("reload_failed", reason=type(error).__name__)  # noqa: TRY400 - a trace may quote values
            is_done = False
        with suppress(OSError):  # the parent has ended
            self._connection.send(Answer(order.number, is_done))
