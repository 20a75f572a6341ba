"""Whether a worker's event loop turns: each beat tells the parent, and one that is late makes requests doubtful."""

import asyncio
from collections.abc import Callable

import structlog

BEAT_S = 1.0
STALL_S = 1.0
"""A beat that is so late was kept back: the process was stopped, or something held the loop."""
DOUBT_S = 5.0
"""For so long after a stall, requests that begin or are to be charged may be those of clients that left meanwhile."""
SETTLE_S = 0.5
"""In doubt a request waits for so long to hear that its client has left: far longer than the server takes to see it,
also where all processes of the machine wait for their turn."""

log = structlog.get_logger()


class Pulse:
    """The beats of one event loop, from `start` on. `is_in_doubt` for a while after the loop stood still."""

    def __init__(self) -> None:
        self.is_in_doubt = False
        self._doubt_until_s = 0.0
        self._next: asyncio.TimerHandle | None = None

    def __repr__(self) -> str:
        return f"<Pulse{' in doubt' if self.is_in_doubt else ''}>"

    def start(self, tell: Callable[[], None]) -> None:
        """Begin to beat, in the running event loop; `tell` is called with each beat."""
        self._loop = asyncio.get_running_loop()
        self._tell = tell
        self._due_s = self._loop.time()
        self._beat()

    def stop(self) -> None:
        """Beat no more."""
        if self._next is not None:
            self._next.cancel()

    async def settle(self) -> None:
        """In doubt, wait until it would be known that the client has left; whoever watches cancels this then."""
        await asyncio.sleep(SETTLE_S)

    def _beat(self) -> None:
        now_s = self._loop.time()
        late_s = now_s - self._due_s
        if late_s > STALL_S:
            self.is_in_doubt, self._doubt_until_s = True, now_s + DOUBT_S
            log.warning("event_loop_stood_still", for_s=round(late_s, 1))
        elif now_s >= self._doubt_until_s:
            self.is_in_doubt = False
        self._tell()
        self._due_s = now_s + BEAT_S
        self._next = self._loop.call_at(self._due_s, self._beat)
