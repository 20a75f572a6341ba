"""Send requests at the same time, and keep some of them in flight while a test looks on."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from tests.support.backend import ScriptedBackend
from tests.support.patience import PATIENCE_S
from tests.support.service import Answer

POLL_S = 0.02

T = TypeVar("T")
Call = Callable[[], Answer]


def at_once(calls: Sequence[Callable[[], T]]) -> list[T]:
    """Do all calls at the same time, a thread for each, and wait for all."""
    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result() for future in _submit(pool, calls)]


@contextmanager
def held(
    backend: ScriptedBackend, *calls: Call, only: str | None = None, admitted: int | None = None
) -> Iterator[list[Future[Answer]]]:
    """Send the calls at the same time, and have them wait at the backend while the block runs.

    With `only`, requests with another prompt are answered meanwhile. `admitted` is how many of the calls get as far
    as the backend, where that is not all.
    """
    backend.hold(only)
    with ThreadPoolExecutor(len(calls)) as pool:
        try:
            asked = _submit(pool, calls)
            backend.wait_for_requests(len(calls) if admitted is None else admitted)
            yield asked
        finally:
            backend.let_go()


def wait_until(happened: Callable[[], bool], *, timeout_s: float = PATIENCE_S) -> None:
    """Look until it has happened; for what the service does after its answer, or on its own."""
    until_s = time.monotonic() + timeout_s
    while not happened():
        assert time.monotonic() < until_s, "it has not happened"
        time.sleep(POLL_S)


def _submit(pool: ThreadPoolExecutor, calls: Sequence[Callable[[], T]]) -> list[Future[T]]:
    start = threading.Barrier(len(calls))

    def run(call: Callable[[], T]) -> T:
        start.wait(PATIENCE_S)
        return call()

    return [pool.submit(run, call) for call in calls]
