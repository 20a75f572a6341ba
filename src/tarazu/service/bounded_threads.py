"""Threads for what would hold up the event loop: so many at once, so many in line, and no more."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

STOPPING = "The service is stopping."


class BoundedThreads:
    """Runs calls on threads of its own, at most `calls_max` of them running and waiting.

    `full` makes the error for one more, and `stopped` the one for a call that comes after the end.
    """

    def __init__(
        self,
        name: str,
        threads: int,
        calls_max: int,
        *,
        full: Callable[[], Exception],
        stopped: Callable[[], Exception],
        beside: "BoundedThreads | None" = None,
    ) -> None:
        """Make the threads; or, `beside` others, run on theirs with a room of one's own to wait in."""
        self._threads: ThreadPoolExecutor = (
            ThreadPoolExecutor(threads, thread_name_prefix=name) if beside is None else beside._threads  # noqa: SLF001
        )
        self._room = threading.BoundedSemaphore(calls_max)
        self._full = full
        self._stopped = stopped

    async def run(self, function: Callable[[], T]) -> T:
        """Run it and answer with what it returns, or raise what it raises."""
        if not self._room.acquire(blocking=False):
            raise self._full()
        try:
            future = self._threads.submit(function)
        except RuntimeError:
            self._room.release()
            raise self._stopped() from None
        future.add_done_callback(lambda _: self._room.release())  # also when whoever asked has left
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """Begin nothing more; what runs ends."""
        self._threads.shutdown(wait=False, cancel_futures=True)
