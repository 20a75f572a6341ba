"""The way to a stop that cuts off no caller: each is told that its connection closes, then none is taken any more."""

import threading
import time
from collections.abc import Callable

import structlog

from tarazu.service.connections import port_state
from tarazu.service.control import Told
from tarazu.service.link import Stage
from tarazu.service.shortages import NO_PROCESSES
from tarazu.service.workers import Workers

TELL_S = 2.0
"""For so long a stop goes on answering where connections are open: each answer tells its caller that it closes."""
ENTER_TIMEOUT_S = 2.0
EMPTY_TIMEOUT_S = 1.0
"""For connections that are made, and that no worker has accepted yet."""
POLL_S = 0.05
HURRY_SIGNALS = 2

log = structlog.get_logger()


class Departure:
    """The stages between serving and the end, in all workers."""

    def __init__(self, workers: Workers, port: int) -> None:
        self._workers = workers
        self._port = port
        self._signals = 0
        self._draining = threading.Lock()

    def __repr__(self) -> str:
        return f"<Departure{', draining' if self._draining.locked() else ''}>"

    def drain(self, for_s: int) -> Told:
        """Begin to drain: answers go on for `for_s` seconds, in which load balancers see it. Then the service stops."""
        if not self._draining.acquire(blocking=False):
            return Told(problems=("it is draining already",))
        end = threading.Timer(for_s, self._workers.leave)
        end.daemon = True
        try:
            end.start()
        except RuntimeError:
            self._draining.release()
            return Told(problems=(NO_PROCESSES,))
        log.info("draining", for_s=for_s)
        self._workers.enter(Stage.DRAINING, ENTER_TIMEOUT_S)
        return Told(f"new connections are closed after one answer, and it stops in {for_s} s")

    def hear_signal(self) -> None:
        """Take note of a signal to stop. A second one ends the telling. It may be called in a signal handler."""
        self._signals += 1

    def leave(self) -> None:
        """Tell those that are connected, for a short while, and then take no more connections."""
        if self._is_connected():
            self._workers.enter(Stage.DRAINING, ENTER_TIMEOUT_S)
            self._wait_while(self._is_connected, TELL_S)
        self._workers.enter(Stage.LEAVING, ENTER_TIMEOUT_S)
        self._wait_while(self._has_waiting, EMPTY_TIMEOUT_S)

    def _wait_while(self, is_so: Callable[[], bool], timeout_s: float) -> None:
        until_s = time.monotonic() + timeout_s
        while is_so() and time.monotonic() < until_s and self._signals < HURRY_SIGNALS:
            time.sleep(POLL_S)

    def _is_connected(self) -> bool:
        """Tell whether connections are open; where the system does not tell, some may be."""
        state = port_state(self._port)
        return state is None or state.open > 0

    def _has_waiting(self) -> bool:
        state = port_state(self._port)
        return state is not None and state.waiting > 0
