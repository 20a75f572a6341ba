"""Measure what it costs to find a backend: the pick alone, a turn taken and ended, and one that is handed on in line.

    python -m bench.pool

A few seconds. Each figure is the best of several rounds, in microseconds, and as so many times the cost of a plain
function call in the same round: that holds on any machine.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from bench.arguments import parser_of
from bench.figures import machine, table
from tarazu.backends.members import Member, Members, Place
from tarazu.backends.port import Reply
from tarazu.backends.turns import NobodyError, Turns
from tarazu.domain.prompt import ChatRequest

MICROSECONDS_PER_SECOND = 1_000_000
NOBODY: frozenset[Member] = frozenset()
LATE_S = float("inf")


class Size(Struct, frozen=True, kw_only=True):
    """How much is measured: in each round `turns` of each kind, with `waiting` in line where there is one."""

    backends: Sequence[int] = (1, 2, 4, 8, 16)
    rounds: int = 100
    turns: int = 200
    waiting: int = 500


class Idle:
    """A backend that nobody asks."""

    name = "idle"

    async def ask(self, request: ChatRequest, *, timeout_s: float) -> Reply:
        """Answer nothing."""
        raise NotImplementedError


class Row(Struct, frozen=True, kw_only=True):
    """The cost of each, in seconds."""

    call_s: float
    pick_s: float
    turn_s: float
    handed_on_s: float


async def measure(backends: int, size: Size) -> Row:
    """Measure with so many backends that are well."""
    rounds = [await _round(backends, size) for _ in range(size.rounds)]
    return Row(**{name: min(getattr(each, name) for each in rounds) for name in Row.__struct_fields__})


async def _round(backends: int, size: Size) -> Row:
    open_, narrow = _members(backends), _members(backends, max_concurrency=1)
    now_s = asyncio.get_running_loop().time()
    turns = Turns(open_)

    async def turn() -> None:
        with await turns.take(NOBODY, LATE_S):
            pass

    return Row(
        call_s=_timed(_nothing, size.turns),
        pick_s=_timed(lambda: open_.pick(NOBODY, now_s), size.turns),
        turn_s=await _timed_async(turn, size.turns),
        handed_on_s=await _handed_on_s(Turns(narrow), backends, size.waiting),
    )


def _members(backends: int, max_concurrency: int | None = None) -> Members:
    place = Place(max_concurrency=max_concurrency)
    return Members([Member(Idle(), place, lambda: 0.5) for _ in range(backends)])


def _nothing() -> None:
    """Stand for any call."""


def _timed(call: Callable[[], object], times: int) -> float:
    began_s = time.perf_counter()
    for _ in range(times):
        call()
    return (time.perf_counter() - began_s) / times


async def _timed_async(call: Callable[[], Awaitable[None]], times: int) -> float:
    began_s = time.perf_counter()
    for _ in range(times):
        await call()
    return (time.perf_counter() - began_s) / times


async def _handed_on_s(turns: Turns, backends: int, waiting: int) -> float:
    """Time how the turns of full backends go down a line, each to the next, its waking included."""

    async def wait() -> None:
        with suppress(NobodyError), await turns.take(NOBODY, LATE_S):
            pass

    held = [await turns.take(NOBODY, LATE_S) for _ in range(backends)]
    line = [asyncio.create_task(wait()) for _ in range(waiting)]
    await asyncio.sleep(0)
    assert turns.waiting == waiting
    began_s = time.perf_counter()
    for turn in held:
        turn.end()
    await asyncio.gather(*line)
    return (time.perf_counter() - began_s) / waiting


async def run(size: Size) -> str:
    """Measure all, and write the report."""
    rows = []
    for backends in size.backends:
        row = await measure(backends, size)
        figures = (row.call_s, row.pick_s, row.turn_s, row.handed_on_s)
        written = [f"{figure * MICROSECONDS_PER_SECOND:.2f}" for figure in figures]
        ratios = [f"{figure / row.call_s:.0f}" for figure in figures[1:]]
        rows.append((str(backends), *written, *ratios))
    costs = ("pick", "turn", "handed on")
    head = ("backends", "a call, us", *(f"{cost}, us" for cost in costs), *(f"{cost} / call" for cost in costs))
    conditions = f"{machine()}. Best of {size.rounds} rounds of {size.turns:,}; {size.waiting:,} in line."
    return f"{conditions}\n\n{table(head, rows)}"


def main() -> None:
    """Measure; print the report, and write it where it is asked for."""
    parser = parser_of("bench.pool", __doc__)
    parser.add_argument("--output", type=Path, help="a file to write the report to")
    arguments = parser.parse_args()
    report = asyncio.run(run(Size()))
    print(report)
    if arguments.output:
        arguments.output.write_text(report + "\n", "utf-8")


if __name__ == "__main__":
    main()
