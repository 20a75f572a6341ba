"""One thread for calls that wait in rooms, and there in lines.

Both are served in turn, so whoever asks for much delays everybody else by one call.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Generic, TypeVar

STOPPING = "The service is stopping."

T = TypeVar("T")
LineT = TypeVar("LineT")

Turn = asyncio.Future[None]


class FairThread:
    """Runs one call at a time, for one event loop. `stopped` makes the error for a call that comes after the end."""

    def __init__(self, name: str, *, stopped: Callable[[str], Exception]) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._rooms: deque[Room[Any]] = deque()
        """The first is the next to be served."""
        self._stopped = stopped
        self._is_busy = False

    def __repr__(self) -> str:
        return f"<FairThread {'busy' if self._is_busy else 'idle'}, {', '.join(map(repr, self._rooms))}>"

    def room(self, name: str, *, waiting_max: int, of_line_max: int, full: Callable[[], Exception]) -> "Room[Any]":
        """Add a room in which so many may wait, in all and in a line; `full` makes the error for one more."""
        room = Room[Any](self, name, waiting_max, of_line_max, full)
        self._rooms.append(room)
        return room

    def close(self) -> None:
        """Begin nothing more; what runs ends."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def run(self, room: "Room[LineT]", line: LineT, function: Callable[[], T]) -> T:
        """Run it when its turn has come; answer with what it returns, or raise what it raises."""
        await self._turn(room, line)
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

    async def _turn(self, room: "Room[LineT]", line: LineT) -> None:
        if not self._is_busy:
            self._is_busy = True
            return
        turn = room.wait(line)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled() and turn.exception() is None:  # it had its turn already
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        """Give the turn to the first in the next line of the next room in which there is one."""
        for _ in range(len(self._rooms)):
            self._rooms.rotate(-1)
            if self._rooms[-1].serve():
                return
        self._is_busy = False


class Room(Generic[LineT]):
    """Where calls wait for a thread. A line is there from the first call that waits in it to the last.

    In a full room the longest line makes place for who has a shorter one.
    """

    def __init__(
        self, thread: FairThread, name: str, waiting_max: int, of_line_max: int, full: Callable[[], Exception]
    ) -> None:
        self._thread = thread
        self._name = name
        self._waiting_max = waiting_max
        self._of_line_max = of_line_max
        self._full = full
        self._lines: dict[LineT, deque[Turn]] = {}
        """The first is the next to be served."""

    def __repr__(self) -> str:
        return f"{self._name}: {sum(map(len, self._lines.values()))} waiting"

    async def run(self, line: LineT, function: Callable[[], T]) -> T:
        """Run it when its turn has come; answer with what it returns, or raise what it raises."""
        return await self._thread.run(self, line, function)

    def wait(self, line: LineT) -> Turn:
        """Stand in line; the answer is done when the turn has come.

        Raises:
            Exception: what `full` makes.
        """
        own = len(self._live(line))
        if own >= self._of_line_max:
            raise self._full()
        if sum(len(self._live(each)) for each in self._lines) >= self._waiting_max:
            longest = max(self._lines, key=lambda each: len(self._live(each)))
            others = self._live(longest)
            if len(others) <= own + 1:
                raise self._full()
            others[-1].set_exception(self._full())
        turn: Turn = asyncio.get_running_loop().create_future()
        self._lines.setdefault(line, deque()).append(turn)
        return turn

    def serve(self) -> bool:
        """Give a turn to the first of the next line; tell whether there was one."""
        while self._lines:
            line = next(iter(self._lines))
            waiting = self._lines.pop(line)
            while waiting:
                turn = waiting.popleft()
                if not turn.done():  # else its caller has left, or it has made place
                    if waiting:
                        self._lines[line] = waiting  # it stands behind the others now
                    turn.set_result(None)
                    return True
        return False

    def _live(self, line: LineT) -> list[Turn]:
        return [turn for turn in self._lines.get(line, ()) if not turn.done()]
