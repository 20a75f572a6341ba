"""One thread for several rooms and lines of calls: in turn, bounded, one at a time."""

import asyncio
import threading
from collections.abc import Callable

import pytest

from tarazu.service.fair_thread import FairThread, Room
from tests.support.patience import PATIENCE_S

OF_LINE_MAX = 3
WAITING_MAX = 6


class FullError(Exception):
    """A room or a line is full."""


class StoppedError(Exception):
    """It was stopped."""


def room_of(thread: FairThread, name: str = "room") -> Room[str]:
    """Add a room."""
    return thread.room(name, waiting_max=WAITING_MAX, of_line_max=OF_LINE_MAX, full=FullError)


def new_room() -> Room[str]:
    """Make a thread with one room."""
    return room_of(FairThread("test", stopped=StoppedError))


def begin(room: Room[str], line: str, number: int = 1) -> list["asyncio.Task[None]"]:
    """Begin so many calls."""
    return [asyncio.ensure_future(room.run(line, lambda: None)) for _ in range(number)]


def test_a_full_line_delays_the_others_by_one_turn() -> None:
    """The lines are served in turn; in a line, in the order in which the calls came."""

    async def run() -> None:
        room = new_room()
        served: list[str] = []

        def call(name: str) -> Callable[[], None]:
            return lambda: served.append(name)

        calls = [room.run("a", call(f"a{number}")) for number in range(4)]
        calls += [room.run("b", call("b1")), room.run("b", call("b2")), room.run("c", call("c1"))]
        await asyncio.gather(*calls)
        assert served == ["a0", "a1", "b1", "c1", "a2", "b2", "a3"]

    asyncio.run(run())


def test_a_full_room_delays_the_others_by_one_turn() -> None:
    """However many lines it has: the rooms are served in turn, and in each its lines."""

    async def run() -> None:
        thread = FairThread("test", stopped=StoppedError)
        crowded, quiet = room_of(thread, "crowded"), room_of(thread, "quiet")
        served: list[str] = []

        def call(name: str) -> Callable[[], None]:
            return lambda: served.append(name)

        calls = [crowded.run(f"{number}", call(f"crowd {number}")) for number in range(1 + WAITING_MAX)]
        calls += [quiet.run("x", call("x1")), quiet.run("x", call("x2"))]
        await asyncio.gather(*calls)
        assert served.index("x1") <= 2
        assert served.index("x2") <= 4
        assert len(served) == 3 + WAITING_MAX
        assert "idle" in repr(thread)
        thread.close()

    asyncio.run(run())


def test_one_more_than_may_wait_in_a_line_is_refused_and_the_others_are_open() -> None:
    """Strangers who fill their line keep nobody else out; those who have left wait no more."""

    async def run() -> None:
        room = new_room()
        waiting = begin(room, "a", 1 + OF_LINE_MAX)
        await asyncio.sleep(0)
        with pytest.raises(FullError):
            await room.run("a", lambda: None)
        await room.run("b", lambda: None)
        await asyncio.gather(*waiting)
        waiting = begin(room, "a", 1 + OF_LINE_MAX)
        await asyncio.sleep(0)
        waiting[-1].cancel()
        await room.run("a", lambda: None)
        outcomes = await asyncio.gather(*waiting, return_exceptions=True)
        assert [isinstance(outcome, asyncio.CancelledError) for outcome in outcomes] == [False] * OF_LINE_MAX + [True]

    asyncio.run(run())


def test_in_a_full_room_the_longest_line_makes_place() -> None:
    """Its newest is refused for who has a shorter one; where all are as short, whoever comes is refused."""

    async def run() -> None:
        room, go_on = new_room(), threading.Event()
        running = asyncio.ensure_future(room.run("x", lambda: go_on.wait(PATIENCE_S)))
        await asyncio.sleep(0)
        crowd = begin(room, "a", OF_LINE_MAX) + begin(room, "b", OF_LINE_MAX)
        await asyncio.sleep(0)
        late = [task for line in "cdef" for task in begin(room, line)]
        await asyncio.sleep(0)
        with pytest.raises(FullError):
            await room.run("g", lambda: None)
        go_on.set()
        outcomes = await asyncio.gather(*crowd, *late, return_exceptions=True)
        refused = [isinstance(outcome, FullError) for outcome in outcomes]
        assert refused == [*[False, True, True] * 2, *[False] * 4]
        assert await running

    asyncio.run(run())


def test_a_caller_who_is_refused_or_leaves_takes_no_turn() -> None:
    """All the others are served, and the thread is idle at the end."""

    async def run() -> None:
        thread = FairThread("test", stopped=StoppedError)
        room = room_of(thread)
        tasks = [task for line in "aaaabbbcc" for task in begin(room, line)]
        await asyncio.sleep(0)
        for task in tasks[1::3]:
            task.cancel()
        tasks += begin(room, "z", 2)
        await asyncio.gather(*tasks, return_exceptions=True)
        await room.run("last", lambda: None)
        assert "idle" in repr(thread)
        thread.close()

    asyncio.run(run())


def test_after_the_end_a_call_is_refused() -> None:
    """Also the next one: the turn is passed on."""

    async def run() -> None:
        thread = FairThread("test", stopped=StoppedError)
        room = room_of(thread)
        thread.close()
        for _ in range(2):
            with pytest.raises(StoppedError):
                await room.run("a", lambda: None)

    asyncio.run(run())
