"""Work for a client only as long as it is there: servers do not end a handler whose client has gone."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.types import Receive

from tarazu.service.pulse import Pulse

WATCH_AFTER_S = 0.05
"""Whoever is answered sooner is not watched, which costs as much as reading the request does."""

T = TypeVar("T")


async def unless_gone(receive: Receive, work: Coroutine[Any, Any, T], pulse: Pulse) -> T | None:
    """Do the work; when the client leaves first, cancel it and answer None. The body must have been read.

    Where the event loop stood still just now, the client may have left long ago: the work begins when it is known that
    it has not.
    """
    worker = asyncio.current_task()
    assert worker is not None
    gone = False

    async def watch() -> None:
        nonlocal gone
        while (await receive())["type"] != "http.disconnect":
            pass
        gone = True
        worker.cancel()

    watching: list[asyncio.Task[None]] = []
    loop = asyncio.get_running_loop()
    later = loop.call_later(
        0 if pulse.is_in_doubt else WATCH_AFTER_S, lambda: watching.append(loop.create_task(watch()))
    )
    try:
        if pulse.is_in_doubt:
            await pulse.settle()
        return await work
    except asyncio.CancelledError:
        work.close()  # where it has not begun
        if gone and worker.uncancel() == 0:
            return None
        raise
    finally:
        later.cancel()
        for watcher in watching:
            watcher.cancel()
