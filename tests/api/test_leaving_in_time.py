"""A client that leaves ends all that is done for it, wherever its request is: at a backend, in line, in a pause."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tarazu.backends.kinds import KINDS
from tests.support.answers import states_of
from tests.support.at_once import wait_until
from tests.support.backend import Behaviour, ScriptedBackend, answers, stalls, stalls_in_body
from tests.support.failing import full
from tests.support.rows import rows
from tests.support.service import Customer, RunningService
from tests.support.wire import Wire, chat_head

IN_TIME_S = 0.25
MEASURES_MAX = 3
"""One of them must be in time: others may keep this machine busy."""
MISSED_S = 1.0
"""Stands for a pause that was over too soon."""
MODELS = """
[plans.large]
monthly_credits = 1000000
requests_per_minute = 100000
""" + "".join(
    f"""
[models."{name}"]
credits = 1
timeout_s = 60
[[models."{name}".backends]]
kind = "{kind}"
url = "BACKEND/{kind}"
model = "m"
{settings}
"""
    for name, kind, settings in [*((kind, kind, "") for kind in KINDS), ("narrow", "openai", "max_concurrency = 1")]
)
FULL = """
[models."full"]
credits = 1
timeout_s = 60
[[models."full".backends]]
kind = "openai"
url = "ADDRESS"
model = "m"
"""


@pytest.fixture(scope="module")
def catalogue() -> Iterator[str]:
    """Sell a model of each kind, one whose backend takes one request at a time, and one whose backend lets nobody in.

    All have a minute.
    """
    with full() as address:
        yield MODELS + FULL.replace("ADDRESS", address)


def _ask(wire: Wire, customer: Customer, model: str, prompt: str = "Hello") -> None:
    body = json.dumps({"model": model, "prompt": prompt}).encode()
    wire.send(chat_head(customer, f"Content-Length: {len(body)}") + body)


def _assert_in_time(measure: Callable[[], float]) -> None:
    took_s: list[float] = []
    while not took_s or (min(took_s) > IN_TIME_S and len(took_s) < MEASURES_MAX):
        took_s.append(measure())
    assert min(took_s) <= IN_TIME_S, took_s


def _until_released_s(service: RunningService, customer: Customer, number: int) -> float:
    """Tell how long it takes until so many of the customer's requests are released."""
    begin_s = time.monotonic()
    wait_until(lambda: states_of(service, customer).count("released") == number)
    return time.monotonic() - begin_s


@rows("decisions.reply.4")
@pytest.mark.parametrize("behaviour", [stalls, stalls_in_body])
@pytest.mark.parametrize("kind", KINDS)
def test_a_call_of_a_client_that_has_left_ends_at_the_backend_in_time(
    service: RunningService, backend: ScriptedBackend, kind: str, behaviour: Behaviour
) -> None:
    """As the backend sees it, from the moment in which the client closes its connection: before its answer or in it."""

    def measure() -> float:
        with Wire(service.port) as wire:
            _ask(wire, service.customer(), kind)
            backend.wait_for_requests(1)
            begin_s = time.monotonic()
        backend.wait_for_leaving()
        return time.monotonic() - begin_s

    backend.behaviour = behaviour
    _assert_in_time(measure)


@rows("decisions.reply.4")
def test_who_leaves_while_the_backend_is_being_connected_to_is_gone_in_time(service: RunningService) -> None:
    """Its credits are back, however long the backend lets nobody in."""
    customer = service.customer()

    def measure() -> float:
        released = states_of(service, customer).count("released")
        with Wire(service.port) as wire:
            _ask(wire, customer, "full")
            wait_until(lambda: states_of(service, customer).count("held") == 1)
        return _until_released_s(service, customer, released + 1)

    _assert_in_time(measure)


@rows("decisions.reply.4")
def test_who_leaves_the_line_of_a_full_backend_is_gone_in_time(
    service: RunningService, backend: ScriptedBackend
) -> None:
    """Its credits are back while the one before it is still served, and the backend never hears of it."""
    customer = service.customer()

    def measure() -> float:
        backend.hold()
        released = states_of(service, customer).count("released")
        with Wire(service.port) as served:
            _ask(served, customer, "narrow")
            backend.wait_for_requests(1)
            with Wire(service.port) as waiting:
                _ask(waiting, customer, "narrow")
                wait_until(lambda: states_of(service, customer).count("held") == 2)
            took_s = _until_released_s(service, customer, released + 1)
            backend.let_go()
            assert served.answer().status == 200
        return took_s

    _assert_in_time(measure)
    charged = states_of(service, customer).count("charged")
    assert service.chat(customer, model="narrow").status == 200
    assert len(backend.received) == charged + 1


@rows("decisions.reply.4")
def test_who_leaves_in_the_pause_between_two_tries_is_gone_in_time(
    service: RunningService, backend: ScriptedBackend
) -> None:
    """No further try is made."""
    customer = service.customer()

    def measure() -> float:
        backend.reset()
        assert service.chat(customer, model="openai").status == 200  # so no failures in a row are left
        backend.behaviour = answers(b"no", status=500)
        released = states_of(service, customer).count("released")
        with Wire(service.port) as wire:
            _ask(wire, customer, "openai")
            backend.wait_for_requests(1 + 2)
        took_s = _until_released_s(service, customer, released + 1)
        return took_s if len(backend.received) == 1 + 2 else MISSED_S

    _assert_in_time(measure)


@rows("decisions.shares_and_time_outs.6")
def test_an_account_that_asks_for_much_delays_another_by_one_request(
    service: RunningService, backend: ScriptedBackend
) -> None:
    """At a backend that takes one at a time: whoever comes last is served next but one."""
    greedy, modest = service.customer(), service.customer()
    backend.hold()
    with ExitStack() as stack:
        asked = [(greedy, f"greedy {number}") for number in range(5)] + [(modest, "modest")]
        wires = []
        for customer, prompt in asked:
            wires.append(stack.enter_context(Wire(service.port)))
            before = states_of(service, customer).count("held")
            _ask(wires[-1], customer, "narrow", prompt)
            wait_until(lambda: states_of(service, customer).count("held") > before)  # noqa: B023 - it is waited for here
        backend.let_go()
        assert [wire.answer().status for wire in wires] == [200] * len(asked)
    prompts = [received.body["messages"][-1]["content"] for received in backend.received]
    assert prompts[0] == "greedy 0"
    assert "modest" in prompts[:3]
    assert sorted(prompts) == sorted(prompt for _, prompt in asked)
