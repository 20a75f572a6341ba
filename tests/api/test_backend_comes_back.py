"""One of two backends dies under load and comes back: no caller sees it, and it gets its share again."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import accumulate, count, takewhile
from types import TracebackType
from typing import Self

import pytest
from msgspec import Struct

from tarazu.backends.health import FAILURES_MAX, REST_JITTER, REST_MAX_S, REST_MIN_S
from tests.support.at_once import wait_until
from tests.support.backend import ScriptedBackend, answers, replies, stalls
from tests.support.patience import PATIENCE_S
from tests.support.service import Customer, RunningService, checked

WORKERS = 2
CLIENTS = 6
REPLIES = 100
"""Enough of them that a share can be told."""
AWAY_REPLIES = 600
"""Served while it is away: some seconds, with trials in them."""
SHARE_MIN = 0.35
"""Of two backends with the same weight."""
UNTIL_TRIPPED = WORKERS * FAILURES_MAX + CLIENTS * (FAILURES_MAX - 1) + CLIENTS
"""A reply to what was asked before it went starts the count again; what is asked when the last fails does so too."""
CATALOGUE = """
[plans.large]
monthly_credits = 1000000
requests_per_minute = 100000

[models."test/pair"]
credits = 1
timeout_s = 20
[[models."test/pair".backends]]
kind = "openai"
url = "DYING"
model = "m"
timeout_s = 1
[[models."test/pair".backends]]
kind = "openai"
url = "BACKEND"
model = "m"
"""


def trials_max(away_s: float) -> int:
    """Tell how often workers may try a backend that is away for so long."""
    rests_s = (min(REST_MIN_S * 2**trial, REST_MAX_S) * (1 - REST_JITTER) for trial in count())
    return WORKERS * sum(1 for _ in takewhile(lambda passed_s: passed_s <= away_s, accumulate(rests_s)))


class Way(Struct, frozen=True):
    """A way for a backend to go, and to come back."""

    go: Callable[[ScriptedBackend], None]
    come_back: Callable[[ScriptedBackend], None]


def _behave_well(backend: ScriptedBackend) -> None:
    backend.behaviour = replies()


def _fail(backend: ScriptedBackend) -> None:
    backend.behaviour = answers(b"no", status=500)


def _stall(backend: ScriptedBackend) -> None:
    backend.behaviour = stalls


WAYS = {
    "is not there": Way(ScriptedBackend.die, ScriptedBackend.come_back),
    "answers 500": Way(_fail, _behave_well),
    "stalls": Way(_stall, _behave_well),
}


class Load:
    """Clients that ask without pause, each for an account of its own; `statuses` counts what they got."""

    def __init__(self, service: RunningService) -> None:
        self.statuses: Counter[int] = Counter()
        self._service = service
        self._stop = threading.Event()
        self._grown = threading.Condition()
        self._threads = [
            threading.Thread(target=self._ask, args=(service.customer("large"),), name="client") for _ in range(CLIENTS)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def wait_for_answers(self, number: int) -> None:
        """Wait until so many more requests have been answered."""
        with self._grown:
            until = self.statuses.total() + number
            assert self._grown.wait_for(lambda: self.statuses.total() >= until, PATIENCE_S), self.statuses

    def _ask(self, customer: Customer) -> None:
        while not self._stop.is_set():
            status = self._service.chat(customer, model="test/pair").status
            with self._grown:
                self.statuses[status] += 1
                self._grown.notify_all()


@pytest.fixture(scope="module")
def dying() -> Iterator[ScriptedBackend]:
    """The backend that goes and comes back."""
    with ScriptedBackend() as backend:
        yield backend


@pytest.fixture(scope="module")
def service(
    dying: ScriptedBackend, module_backend: ScriptedBackend, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningService]:
    """A service of two workers, each with what it knows of the backends; the books, a file, have no part in it."""
    folder, server = tmp_path_factory.mktemp("service"), f"workers = {WORKERS}"
    catalogue = CATALOGUE.replace("DYING", dying.url)
    with checked(RunningService(folder, module_backend.url, catalogue=catalogue, server=server)) as running:
        yield running


@pytest.mark.parametrize("way", WAYS)
def test_a_backend_that_dies_and_comes_back_costs_no_caller_a_reply(
    service: RunningService, dying: ScriptedBackend, backend: ScriptedBackend, way: str
) -> None:
    """Whichever way it goes: no 502 at all, it is left alone while it is away, and then has its share again."""

    def share(load: Load) -> float:
        before = len(dying.received), len(backend.received)
        load.wait_for_answers(REPLIES)
        served = len(dying.received) - before[0], len(backend.received) - before[1]
        return served[0] / sum(served)

    with Load(service) as load:
        wait_until(lambda: share(load) > SHARE_MIN, timeout_s=PATIENCE_S)
        WAYS[way].go(dying)
        before, went_at_s = len(dying.received), time.monotonic()
        load.wait_for_answers(AWAY_REPLIES)
        asked_in_vain, away_s = len(dying.received) - before, time.monotonic() - went_at_s
        WAYS[way].come_back(dying)
        wait_until(lambda: share(load) > SHARE_MIN, timeout_s=PATIENCE_S)
    assert set(load.statuses) == {200}
    assert asked_in_vain <= UNTIL_TRIPPED + trials_max(away_s)
