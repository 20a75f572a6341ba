"""One thread for several lines of calls: in turn, bounded, one at a time."""

import asyncio
from collections.abc import Callable

import pytest

from tarazu.service.fair_thread import FairThread

WAITING_MAX = 3


class FullError(Exception):
    """A line is full."""


class StoppedError(Exception):
    """It was stopped."""


def new_thread() -> FairThread[str]:
    """Make a thread."""
    return FairThread("test", WAITING_MAX, full=FullError, stopped=StoppedError)


def test_a_full_line_delays_the_others_by_one_turn() -> None:
    """The lines are served in turn; in a line, in the order in which the calls came."""

    async def run() -> None:
        thread = new_thread()
        served: list[str] = []

        def call(name: str) -> Callable[[], None]:
            return lambda: served.append(name)

        calls = [thread.run("a", call("a0"))]
        calls += [thread.run("a", call(f"a{number}")) for number in range(1, WAITING_MAX + 1)]
        calls += [thread.run("b", call("b1")), thread.run("b", call("b2")), thread.run("c", call("c1"))]
        await asyncio.gather(*calls)
        assert served == ["a0", "a1", "b1", "c1", "a2", "b2", "a3"]
        thread.close()

    asyncio.run(run())


def test_one_more_than_may_wait_in_a_line_is_refused_and_the_others_are_open() -> None:
    """Strangers who fill their line keep nobody else out; those who have left wait no more."""

    async def run() -> None:
        thread = new_thread()
        waiting = [asyncio.ensure_future(thread.run("a", lambda: None)) for _ in range(1 + WAITING_MAX)]
        await asyncio.sleep(0)
        with pytest.raises(FullError):
            await thread.run("a", lambda: None)
        await thread.run("b", lambda: None)
        await asyncio.gather(*waiting)
        waiting = [asyncio.ensure_future(thread.run("a", lambda: None)) for _ in range(1 + WAITING_MAX)]
        await asyncio.sleep(0)
        waiting[-1].cancel()
        await thread.run("a", lambda: None)
        outcomes = await asyncio.gather(*waiting, return_exceptions=True)
        assert [isinstance(outcome, asyncio.CancelledError) for outcome in outcomes] == [False] * WAITING_MAX + [True]
        assert "idle" in repr(thread)
        thread.close()

    asyncio.run(run())


def test_after_the_end_a_call_is_refused() -> None:
    """Also the next one: the turn is passed on."""

    async def run() -> None:
        thread = new_thread()
        thread.close()
        for _ in range(2):
            with pytest.raises(StoppedError):
                await thread.run("a", lambda: None)

    asyncio.run(run())
