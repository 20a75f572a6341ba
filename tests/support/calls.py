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
    with _no_collections():
        before = sys.getprofile()
        sys.setprofile(calls)
        try:
            yield calls
        finally:
            sys.setprofile(before)


def calls_of(function: Callable[[], object]) -> int:
    """Count the calls that a function makes, and one more."""
    calls = Calls()
    with _no_collections():
        before = sys.getprofile()
        sys.setprofile(calls)
        try:
            function()
        finally:
            sys.setprofile(before)
    return calls.number


@contextmanager
def _no_collections() -> Iterator[None]:
    """Collect no garbage meanwhile: what a collection calls belongs to whatever was made before."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
