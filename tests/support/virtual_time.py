"""An event loop whose time passes only by waiting: a minute of time-outs is over at once, and always in one order."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

AnswerT = TypeVar("AnswerT")


class _Selector(selectors.SelectSelector):
    """Lets the loop's time jump to its next timer in place of waiting for it."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("everybody waits for something that nobody will do")
        self.now_s += timeout
        return super().select(0)


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """The loop. Nothing in it may wait for another thread or process."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        """Tell the virtual time, in seconds; it begins at 0."""
        return self._virtual.now_s


def run_in_virtual_time(coroutine: Coroutine[Any, Any, AnswerT]) -> AnswerT:
    """Run the coroutine to its end in a loop of its own."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(coroutine)
