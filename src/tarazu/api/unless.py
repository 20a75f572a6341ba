"""Work that something else may make needless while it goes on, such as a client who leaves, or time that runs out."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
U = TypeVar("U")


async def unless(work: Coroutine[Any, Any, T], watch: Callable[[], Coroutine[Any, Any, U]], *, after_s: float) -> T | U:
    """Do the work, and from `after_s` on watch beside it; when the watch ends first, cancel the work.

    Answers with the outcome of whichever has ended first, or raises its error. Work that ends sooner than `after_s`, as
    most does, costs no task of its own.
    """
    worker = asyncio.current_task()
    assert worker is not None
    seen: list[U | Exception] = []

    async def run() -> None:
        try:
            seen.append(await watch())
        except Exception as error:  # noqa: BLE001 - it is raised where the work is done
            seen.append(error)
        worker.cancel()

    watching: list[asyncio.Task[None]] = []
    loop = asyncio.get_running_loop()
    alarm = loop.call_later(after_s, lambda: watching.append(loop.create_task(run())))
    try:
        return await work
    except asyncio.CancelledError:
        if not seen or worker.uncancel() != 0:
            raise
        if isinstance(seen[0], Exception):
            raise seen[0] from None
        return seen[0]
    finally:
        alarm.cancel()
        for watcher in watching:
            watcher.cancel()
