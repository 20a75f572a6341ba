"""Work for a client only as long as it is there: servers do not end a handler whose client has gone."""

from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.types import Receive

from tarazu.api.unless import unless
from tarazu.service.pulse import Pulse

WATCH_AFTER_S = 0.05
"""Whoever is answered sooner is not watched, which costs as much as reading the request does."""

T = TypeVar("T")


async def unless_gone(receive: Receive, work: Coroutine[Any, Any, T], pulse: Pulse) -> T | None:
    """Do the work; when the client leaves first, cancel it and answer None. The body must have been read.

    Where the event loop stood still just now, the client may have left long ago: the work begins when it is known that
    it has not.
    """

    async def gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    if pulse.is_in_doubt:
        return await unless(_settled(pulse, work), gone, after_s=0)
    return await unless(work, gone, after_s=WATCH_AFTER_S)


async def _settled(pulse: Pulse, work: Coroutine[Any, Any, T]) -> T:
    try:
        await pulse.settle()
        return await work
    finally:
        work.close()  # where it has not begun
