"""Two thousand requests that wait for slow backends take little memory, and other models are served meanwhile."""

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from tests.support.answers import look
from tests.support.at_once import at_once, wait_until
from tests.support.backend import ScriptedBackend
from tests.support.patience import PATIENCE_S
from tests.support.processes import KIB, peak_bytes, workers
from tests.support.service import Customer, RunningService, checked
from tests.support.wire import Wire, chat_head

WAITING = 2_000
BODY_FILLER = "x" * 1_000
NARROW = 8
OTHERS = 20
CATALOGUE = f"""
[plans.large]
monthly_credits = 1000000
requests_per_minute = 100000

[models."wide"]
credits = 1
timeout_s = 120
[[models."wide".backends]]
kind = "openai"
url = "BACKEND"
model = "m"

[models."narrow"]
credits = 1
timeout_s = 120
[[models."narrow".backends]]
kind = "openai"
url = "BACKEND"
model = "m"
max_concurrency = {NARROW}

[models."other"]
credits = 1
timeout_s = 20
[[models."other".backends]]
kind = "openai"
url = "BACKEND"
model = "m"
"""


@pytest.fixture
def service(backend: ScriptedBackend, tmp_path: Path) -> Iterator[RunningService]:
    """A service whose process carries more than wait here; the memory of each test is its own."""
    server = f"max_in_flight = {WAITING + 500}\nmax_in_flight_per_account = {WAITING + 500}"
    with checked(RunningService(tmp_path, backend.url, catalogue=CATALOGUE, server=server)) as running:
        yield running


def _ask(wire: Wire, customer: Customer, model: str) -> None:
    body = f'{{"model": "{model}", "prompt": "slow", "filler": "{BODY_FILLER}"}}'.encode()
    wire.send(chat_head(customer, f"Content-Length: {len(body)}") + body)


@pytest.mark.parametrize(
    ("model", "at_the_backend", "each_bytes_max"), [("wide", WAITING, 128 * KIB), ("narrow", NARROW, 48 * KIB)]
)
def test_many_that_wait_take_little_memory_and_harm_no_other_model(
    service: RunningService, backend: ScriptedBackend, model: str, at_the_backend: int, each_bytes_max: int
) -> None:
    """At a slow backend, or in line for one: the others are served, and in the end so are they, each for its credit."""
    waiting, other = service.customer(), service.customer()
    assert service.chat(other, model="other").status == 200
    [worker] = workers(service)
    before = peak_bytes(worker)
    with ExitStack() as stack:
        backend.hold("slow")
        wires = [stack.enter_context(Wire(service.port)) for _ in range(WAITING)]
        for wire in wires:
            _ask(wire, waiting, model)
        wait_until(lambda: _held(service) == WAITING, timeout_s=PATIENCE_S)
        wait_until(lambda: len(backend.received) == 1 + at_the_backend, timeout_s=PATIENCE_S)
        grown = peak_bytes(worker) - before
        answers = at_once([partial(service.chat, other, "Hello", model="other")] * OTHERS)
        assert [answer.status for answer in answers] == [200] * OTHERS
        assert _held(service) == WAITING
        backend.let_go()
        assert {wire.answer().status for wire in wires} == {200}
    assert grown / WAITING < each_bytes_max
    assert service.account(waiting).used == WAITING


def _held(service: RunningService) -> int:
    [(held,)] = look(service, "SELECT count(*) FROM requests WHERE state = 'held'")
    return int(held)
