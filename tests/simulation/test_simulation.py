"""Thousands of small worlds, each out of one number, in which what can go wrong does: the books stay exact."""

import os
import shlex
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import lru_cache, partial

import pytest

from tarazu.store import ledger
from tests.simulation.__main__ import main
from tests.simulation.faults import Kind
from tests.simulation.judge import Judge
from tests.simulation.machine import Machine
from tests.simulation.machines import MACHINES
from tests.simulation.postgresql_machine import PostgresqlMachine
from tests.simulation.simulate import SimulationError, hash_of, simulate
from tests.support.scale import scaled
from tests.support.seeds import session_seed
from tests.support.stores import PostgresqlStore

FIXED = 50
"""Worlds that are the same for every commit. The others are drawn from its hash, so that each commit tries new ones."""
WORLDS = scaled(100, least=FIXED)
"""On SQLite."""
POSTGRESQL_WORLDS = scaled(5)
TEST_MAX_S = 600
"""Far more than a test takes, also beside other work."""
WORLDS_PER_TEST = 50
"""So that several processes can share the work, and an operator who waits sees it go on."""

pytestmark = pytest.mark.timeout(TEST_MAX_S)


def chunks(worlds: int, worlds_per_test: int) -> list[range]:
    """Choose the worlds: the fixed ones first, then those of the commit; cut into ranges."""
    drawn = FIXED + 1 + session_seed()
    fixed = range(1, min(worlds, FIXED) + 1)
    return [
        seeds[first : first + worlds_per_test]
        for seeds in (fixed, range(drawn, drawn + worlds - len(fixed)))
        for first in range(0, len(seeds), worlds_per_test)
    ]


def name_of(seeds: range) -> str:
    """Name a test by its seeds."""
    return f"{seeds[0]}-{seeds[-1]}"


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    """Switch a machine on for all worlds on SQLite."""
    with MACHINES["sqlite"]() as machine:
        yield machine


@pytest.fixture(scope="module")
def trace_of(machine: Machine) -> Callable[[int], list[str]]:
    """Run a world; of the fixed ones the traces are kept for all tests."""
    return lru_cache(FIXED)(partial(simulate, machine=machine))


@pytest.fixture(scope="module")
def postgresql_machine(
    postgresql_store: PostgresqlStore, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Machine]:
    """Make a machine of the server that all tests share, for all worlds on PostgreSQL."""
    with closing(PostgresqlMachine(postgresql_store, tmp_path_factory.mktemp("machine"))) as machine:
        yield machine


@pytest.mark.parametrize("seeds", chunks(WORLDS, WORLDS_PER_TEST), ids=name_of)
def test_in_every_world_the_books_stay_exact(seeds: range, trace_of: Callable[[int], list[str]]) -> None:
    """Whatever crashes, jumps, comes late or twice: each reply is charged once; no credit is lost, doubled or stuck."""
    for seed in seeds:
        trace_of(seed)


@pytest.mark.parametrize("seeds", chunks(POSTGRESQL_WORLDS, WORLDS_PER_TEST // 4), ids=name_of)
def test_in_every_world_on_postgresql_the_books_stay_exact(seeds: range, postgresql_machine: Machine) -> None:
    """The same worlds but for the power cuts: a process that dies leaves a closed connection."""
    for seed in seeds:
        simulate(seed, postgresql_machine)


def test_a_seed_is_always_the_same_world(machine: Machine, trace_of: Callable[[int], list[str]]) -> None:
    """Here twice, and in another process with other hashes: the traces are the same, to the last word."""
    seeds = range(1, 6)
    here = [hash_of(trace_of(seed)) for seed in seeds]
    assert [hash_of(simulate(seed, machine)) for seed in seeds] == here
    code = (
        "from tests.simulation.machines import MACHINES; from tests.simulation.simulate import hash_of, simulate\n"
        f"with MACHINES['sqlite']() as machine: print(*(hash_of(simulate(seed, machine)) for seed in {seeds}))"
    )
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": "7"}
    ran = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True)
    assert ran.stdout.split() == here
    assert len(set(here)) == len(here)


def test_everything_happens_in_some_world(trace_of: Callable[[int], list[str]]) -> None:
    """Every kind of fault and of answer is met: a simulation in which nothing happens would find nothing."""
    text = "\n".join(line for seed in range(1, FIXED + 1) for line in trace_of(seed))
    words = [kind.value.format("") for kind in Kind]
    words += ["POWER CUT: 0 of 1", "is killed", "sets its clock", "reads new prices", "with 90 s of grace"]
    words += ["held 4 of plan", "of api_balance", "again reply to", "True", "False", "IntegrityError", "was there"]
    words += ["rate_limit_exceeded", "idempotency_conflict", "idempotency_mismatch", "api_credits_exhausted"]
    words += [
        "abandoned",
        "timed_out",
        "upgrade_required",
        "system_stopped",
        "account_unavailable",
        "invalid_api_key",
        "messages_required",
    ]
    assert [word for word in words if word not in text] == []


def test_a_charge_that_is_not_synced_to_disk_is_found(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Were nothing synced, some power cut would take a charge back whose reply has been delivered."""
    monkeypatch.setattr(ledger, "needs_disk", lambda _operation: False)
    with pytest.raises(SimulationError, match=r"delivered and not charged|told to be in the books"):
        deque((simulate(seed, machine) for seed in range(1, 101)), maxlen=0)


def test_a_failure_tells_what_has_happened_and_how_to_see_it_again(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The seed, the reason, the last lines of the trace, and the command that prints it all."""

    def fail(_judge: Judge) -> None:
        raise AssertionError("held for ever")

    monkeypatch.setattr(Judge, "nothing_is_held", fail)
    with pytest.raises(SimulationError) as caught:
        simulate(3, machine)
    lines = str(caught.value).splitlines()
    assert lines[0] == "seed 3 on sqlite: held for ever"
    assert any(" p1 " in line for line in lines[1:-1])
    assert lines[-1] == f"The whole trace: {shlex.quote(sys.executable)} -m tests.simulation 3 sqlite"


def test_the_whole_trace_can_be_printed(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    """The command of a failure prints what has happened in its world."""
    main(3)
    assert capsys.readouterr().out.splitlines() == simulate(3, machine)
