"""More than the service can carry is refused at once and clearly, and what it carries is carried to the end."""

import asyncio
import select
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial

import pytest

from tests.support.answers import assert_refused, credits_left, statuses
from tests.support.at_once import at_once, held, wait_until
from tests.support.backend import Exchange, ScriptedBackend, completion, resets
from tests.support.envelopes import assert_domain_error
from tests.support.processes import peak_bytes, workers
from tests.support.rows import rows
from tests.support.service import MODELS, USAGE, Customer, RunningService, checked
from tests.support.stores import Store
from tests.support.windows import NONE_TAKEN, places
from tests.support.wire import Wire, chat_head

MAX_IN_FLIGHT = 4
AT_ONCE_S = 2
"""Far less than a held backend takes."""
CROWD = 60
BODIES = 140
BODY_PART = b" " * 1_000_000
"""140 of them are more than the 128 MiB that bodies may take together."""
MEMORY_BYTES_MAX = 384 * 1024 * 1024


@pytest.fixture(scope="module")
def service(
    store: Store, module_backend: ScriptedBackend, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningService]:
    """A service that carries four completions at once; at the end its books must balance."""
    folder = tmp_path_factory.mktemp("service")
    server = f"max_in_flight = {MAX_IN_FLIGHT}\nmax_in_flight_per_account = {MAX_IN_FLIGHT}"
    url = store.new_books(folder)
    with checked(RunningService(folder, module_backend.url, server=server, database_url=url)) as running:
        yield running


@rows("spec.codes.system_stopped", "decisions.reply.5", "decisions.added_by_this_project.4")
def test_one_more_than_max_in_flight_is_refused_at_once(service: RunningService, backend: ScriptedBackend) -> None:
    """The fifth gets 503 with Retry-After while four wait; those are served, and then everybody is again."""
    customer, fifth = service.customer("large"), service.customer("three")
    calls = [partial(service.chat, customer)] * MAX_IN_FLIGHT
    with held(backend, *calls) as asked:
        begin_s = time.monotonic()
        answer = service.chat(fifth)
        assert time.monotonic() - begin_s < AT_ONCE_S
        assert_refused(answer, 503, "system_stopped", counted=False)
        assert int(answer.headers["retry-after"]) >= 1
        assert places(service, fifth) == NONE_TAKEN
        assert not any(future.done() for future in asked)
    assert [future.result().status for future in asked] == [200] * MAX_IN_FLIGHT
    assert service.account(customer).used == MAX_IN_FLIGHT
    assert credits_left(service, fifth) == (3, 0)
    assert service.chat(fifth).status == 200
    assert len(backend.received) == MAX_IN_FLIGHT + 1


@rows("spec.codes.system_stopped")
def test_a_full_house_refuses_before_the_body_has_come(service: RunningService, backend: ScriptedBackend) -> None:
    """Refusing is cheap, and the connection of a caller who has sent all carries the next request."""
    customer = service.customer("large")
    body = b'{"prompt":"x"}'
    head = chat_head(customer, f"Content-Length: {len(body)}")
    with Wire(service.port) as whole, Wire(service.port) as half:
        with held(backend, *[partial(service.chat, customer)] * MAX_IN_FLIGHT):
            half.send(head)
            assert_domain_error(half.answer(), 503, "system_stopped")
            for _ in range(2):
                whole.send(head + body)
                assert_domain_error(whole.answer(), 503, "system_stopped")
        whole.send(head + body)
        assert whole.answer().status == 200


def test_the_other_endpoints_answer_while_completions_are_refused(
    service: RunningService, backend: ScriptedBackend
) -> None:
    """A full house does not keep anybody from looking at models, usage and health."""
    customer = service.customer("large")
    with held(backend, *[partial(service.chat, customer)] * MAX_IN_FLIGHT):
        assert service.get(MODELS, customer).status == 200
        assert service.get(USAGE, customer).json["api_credits"]["used"] == MAX_IN_FLIGHT
        assert service.get("/health").status == 200


@pytest.mark.parametrize("end", ["reply", "failed try", "client gone", "refusal"])
def test_every_end_of_a_request_frees_its_place(service: RunningService, backend: ScriptedBackend, end: str) -> None:
    """However twenty completions have ended, four are carried again, and not five."""
    customer = service.customer("large")
    for _ in range(5):
        if end == "client gone":
            _leave(service, backend, customer)
        else:
            backend.behaviour = resets if end == "failed try" else backend.behaviour
            model = "no/such-model" if end == "refusal" else "test/one"
            at_once([partial(service.chat, customer, model=model)] * MAX_IN_FLIGHT)
    backend.reset()
    with held(backend, *[partial(service.chat, customer)] * MAX_IN_FLIGHT) as asked:
        assert service.chat(customer).status == 503
    assert [future.result().status for future in asked] == [200] * MAX_IN_FLIGHT


def _leave(service: RunningService, backend: ScriptedBackend, customer: Customer) -> None:
    backend.hold()
    with ExitStack() as stack:
        for _ in range(MAX_IN_FLIGHT):
            wire = stack.enter_context(Wire(service.port))
            wire.send(chat_head(customer, "Content-Length: 14") + b'{"prompt":"x"}')
        backend.wait_for_requests(MAX_IN_FLIGHT)
    for _ in range(MAX_IN_FLIGHT):
        backend.wait_for_leaving()
    backend.let_go()
    wait_until(lambda: service.account(customer).used == 0)


@rows("spec.codes.system_stopped")
def test_a_crowd_gets_replies_or_clear_refusals_and_pays_for_the_replies(
    service: RunningService, backend: ScriptedBackend
) -> None:
    """Of 60 at once each is served or told to come back; the backend never has more than four to do."""
    busy = most_busy = 0

    async def answer_soon(exchange: Exchange) -> None:
        nonlocal busy, most_busy
        busy += 1
        most_busy = max(most_busy, busy)
        await asyncio.sleep(0.02)
        busy -= 1
        await exchange.send(200, completion())

    backend.behaviour = answer_soon
    customer = service.customer("large")
    answers = at_once([partial(service.chat, customer)] * CROWD)
    served = statuses(answers).count(200)
    assert MAX_IN_FLIGHT <= served < CROWD
    for answer in answers:
        if answer.status != 200:
            assert_domain_error(answer, 503, "system_stopped")
    assert most_busy <= MAX_IN_FLIGHT
    assert service.account(customer).used == served == len(backend.received)


@rows("spec.codes.system_stopped", "decisions.order_of_checks.9")
def test_bodies_take_no_more_memory_together_than_their_bound(
    service: RunningService, backend: ScriptedBackend
) -> None:
    """140 bodies of almost a megabyte that stay half-sent: the last are refused, and all is well when they are gone."""
    customer = service.customer("three")
    others = [service.customer("three") for _ in range(5)]
    [worker] = workers(service)
    with ExitStack() as stack:
        wires = [stack.enter_context(Wire(service.port)) for _ in range(BODIES)]
        for place, wire in enumerate(wires):
            head = chat_head(others[place % len(others)], f"Content-Length: {len(BODY_PART) + 1}")
            wire.send(head + BODY_PART)
        wait_until(lambda: select.select([wire.socket for wire in wires], [], [], 0)[0] != [])
        refused = [wire for wire in wires if select.select([wire.socket], [], [], 0)[0]]
        assert 0 < len(refused) < BODIES / 2
        for wire in refused:
            assert_domain_error(wire.answer(), 503, "system_stopped")
    assert peak_bytes(worker) < MEMORY_BYTES_MAX
    wait_until(lambda: service.chat(customer).status == 200)
    assert credits_left(service, customer) == (2, 0)
    assert len(backend.received) == 1
