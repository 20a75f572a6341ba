"""What it costs to find a backend, counted and not timed (bench/pool.py does that): few calls, and no lock."""

import ast
from collections.abc import Collection
from inspect import getsource
from types import ModuleType

import pytest

from tarazu.backends import (
    health,
    http_backend,
    http_client,
    local_backend,
    members,
    pool,
    turns,
)
from tarazu.backends.health import FAILURES_MAX
from tarazu.backends.members import Member, Members, NoPick, Place
from tarazu.backends.port import BackendError, Fault
from tests.support.calls import calls_of
from tests.support.pools import PlannedBackend, ask_at_once, make_pool
from tests.support.virtual_time import run_in_virtual_time

CALLS_EACH_MAX = {"well": 2, "full": 2, "tripped": 4}
"""For each backend of a pool, those of C among them, by its state: no more than are made."""
CALLS_BESIDE_MAX = 12
LOCKS = {"threading", "multiprocessing", "Lock", "RLock", "Semaphore", "BoundedSemaphore", "Condition"}


@pytest.mark.parametrize("state", CALLS_EACH_MAX)
@pytest.mark.parametrize("backends", [1, 2, 4, 8, 16])
def test_a_pick_makes_few_calls_for_each_backend(backends: int, state: str) -> None:
    """Whatever they can do for a request."""
    place = Place(max_concurrency=4)
    all_ = [Member(PlannedBackend(), place, lambda: 0.5) for _ in range(backends)]
    for member in all_:
        member.in_flight = 4 if state == "full" else 0
        for _ in range(FAILURES_MAX if state == "tripped" else 0):
            member.health.failed(BackendError(Fault.STATUS), 0.0, 0.0, is_trial=False)
    picking = Members(all_)
    calls = calls_of(lambda: picking.pick(frozenset(), 0.5))
    assert 0 < calls <= CALLS_EACH_MAX[state] * backends + CALLS_BESIDE_MAX


def test_what_a_turn_costs_does_not_grow_with_those_who_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """A place that gets free is a pick or two for each line, and one that joins a line is none."""
    picks = 0
    pick = Members.pick

    def counted(self: Members, asked: Collection[Member], now_s: float) -> Member | NoPick:
        nonlocal picks
        picks += 1
        return pick(self, asked, now_s)

    monkeypatch.setattr(Members, "pick", counted)
    moody, full = PlannedBackend("moody", Fault.KEY_REFUSED, takes_s=0.0), PlannedBackend("full", takes_s=0.01)
    pool = make_pool(moody, (full, Place(max_concurrency=1, priority=1)))
    assert run_in_virtual_time(ask_at_once(pool, 1_000)) == ["full"] * 1_000
    assert picks < 8_000


@pytest.mark.parametrize(
    "module",
    [pool, members, turns, health, http_backend, http_client, local_backend],
    ids=lambda module: module.__name__,
)
def test_no_lock_is_held_across_a_call(module: ModuleType) -> None:
    """There is none: everything happens in the event loop, and between two awaits nobody else comes in."""
    names = set()
    for node in ast.walk(ast.parse(getsource(module))):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names |= {part for alias in node.names for part in alias.name.split(".")}
            names |= set((getattr(node, "module", None) or "").split("."))
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
    assert names & LOCKS == set()
