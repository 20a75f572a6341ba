"""One thread for many lines of calls, each bounded: the lines are served in turn, so a full one delays no other."""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Generic, TypeVar

STOPPING = "The service is stopping."

T = TypeVar("T")
LineT = TypeVar("LineT")


class FairThread(Generic[LineT]):
    """Runs one call at a time, for one event loop; in each line at most `waiting_max` wait.

    A line is there from the first call that waits in it to the last. `full` makes the error for one more, and `stopped`
    the one for a call that comes after the end.
    """

    def __init__(
        self,
        name: str,
        waiting_max: int,
        *,
        full: Callable[[], Exception],
        stopped: Callable[[str], Exception],
    ) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._lines: dict[LineT, deque[asyncio.Future[None]]] = {}
        """The lines in which somebody waits; the first is the next to be served."""
        self._waiting_max = waiting_max
        self._full = full
        self._stopped = stopped
        self._is_busy = False

    def __repr__(self) -> str:
        waiting = ", ".join(f"{line}: {len(waiting)}" for line, waiting in self._lines.items())
        return f"<FairThread {'busy' if self._is_busy else 'idle'}, waiting {waiting}>"

    async def run(self, line: LineT, function: Callable[[], T]) -> T:
        """Run it when its turn has come; answer with what it returns, or raise what it raises."""
        await self._turn(line)
        try:
            future = self._thread.submit(function)
        except RuntimeError:
            self._pass_on()
            raise self._stopped(STOPPING) from None
        loop = asyncio.get_running_loop()

        def pass_on(_future: Future[Any]) -> None:  # also when the caller has left: the thread is busy until then
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(self._pass_on)

        future.add_done_callback(pass_on)
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """Begin nothing more; what runs ends."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _turn(self, line: LineT) -> None:
        if not self._is_busy:
            self._is_busy = True
            return
        waiting = self._lines.setdefault(line, deque())
        if sum(not turn.done() for turn in waiting) >= self._waiting_max:
            raise self._full()
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # it had its turn already
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        """Give the turn to the first of the next line in which there is one."""
        while self._lines:
            line = next(iter(self._lines))
            waiting = self._lines.pop(line)
            while waiting:
                turn = waiting.popleft()
                if not turn.done():  # a caller who has left has cancelled it
                    if waiting:
                        self._lines[line] = waiting  # it stands behind the others now
                    turn.set_result(None)
                    return
        self._is_busy = False
