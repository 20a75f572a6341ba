"""Count the calls that something makes, of Python and of C: what it costs, the same on any machine."""

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from msgspec import Struct


class Calls(Struct):
    """How many there were so far."""

    number: int = 0

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:  # noqa: ARG002 - what a profiler is given
        """Take note of what the interpreter tells a profiler."""
        self.number += event in {"call", "c_call"}


@contextmanager
def counted() -> Iterator[Calls]:
    """Count the calls of this thread inside the block in all coroutines, and a few of the block's own."""
    calls = Calls()
    before, collects = sys.getprofile(), gc.isenabled()
    gc.disable()  # what a collection calls belongs to whatever was made before
    sys.setprofile(calls)
    try:
        yield calls
    finally:
        sys.setprofile(before)
        if collects:
            gc.enable()


def calls_of(function: Callable[[], object]) -> int:
    """Count the calls that a function makes, and one more."""
    calls = Calls()
    before, collects = sys.getprofile(), gc.isenabled()
    gc.disable()  # as in `counted`
    sys.setprofile(calls)
    try:
        function()
    finally:
        sys.setprofile(before)
        if collects:
            gc.enable()
    return calls.number
