"""What one address or one account does with connections and time-outs: the others are served all the while."""

import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from functools import partial

import pytest

from tests.support.answers import credits_left
from tests.support.at_once import at_once, held, wait_until
from tests.support.backend import ScriptedBackend, resets, stalls
from tests.support.envelopes import assert_domain_error
from tests.support.missing import cannot_try
from tests.support.processes import no_file_left, open_files, workers
from tests.support.rows import rows
from tests.support.service import CATALOGUE, MODELS, Answer, RunningService, checked
from tests.support.stores import Store
from tests.support.wire import Wire, chat_head

CROWD = 8_200
"""More than a worker's places."""
OF_ADDRESS = 512
ASKING = 20
ONE_IS_PATIENT = CATALOGUE.replace("timeout_s = 5", "timeout_s = 60", 1)
"""Where a request of the first model waits for what may take a busy machine a while."""
NOT_READ = b"GET /docs HTTP/1.1\r\nHost: test\r\n\r\n" * 30


@pytest.fixture(scope="module")
def service(
    store: Store, module_backend: ScriptedBackend, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningService]:
    """A service that takes this machine for any other."""
    folder = tmp_path_factory.mktemp("service")
    server = f"trusted_proxies = []\nconnections_per_address = {OF_ADDRESS}"
    running = RunningService(
        folder, module_backend.url, catalogue=ONE_IS_PATIENT, server=server, database_url=store.new_books(folder)
    )
    with checked(running):
        yield running


@pytest.fixture
def many_files() -> Iterator[None]:
    """Let this process open as many files as the crowd needs."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[1] != resource.RLIM_INFINITY and before[1] < 2 * CROWD:
        cannot_try(f"The limit of open files is below {2 * CROWD:,}: raise it with `ulimit -Hn`.")
    resource.setrlimit(resource.RLIMIT_NOFILE, (2 * CROWD, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@rows("decisions.shares_and_time_outs.2")
def test_running_out_of_open_files_is_no_failure_of_a_backend(
    service: RunningService, backend: ScriptedBackend
) -> None:
    """The answer is 503 with the credits back, the backend stays trusted, and all is well with files again."""
    customer = service.customer("three")
    [worker] = workers(service)
    body = b'{"prompt": "Hello"}'
    request = chat_head(customer, f"Content-Length: {len(body)}") + body
    backend.die()  # with all connections that are kept to it
    backend.come_back()
    backend.behaviour = resets
    with Wire(service.port) as wire:
        wire.send(request)
        assert_domain_error(wire.answer(), 502, "upstream_error")
        backend.reset()
        with no_file_left(worker):
            for _ in range(5):
                wire.send(request)
                assert_domain_error(wire.answer(), 503, "system_stopped")
        assert backend.received == []
        wire.send(request)
        assert wire.answer().status == 200
    assert credits_left(service, customer) == (2, 0)
    assert '"no_open_file"' in service.log.read_text()


@rows("decisions.shares_and_time_outs.3")
def test_one_callers_time_outs_do_not_make_a_model_unavailable(
    service: RunningService, backend: ScriptedBackend
) -> None:
    """Five requests of one account that run out of time cost the others nothing; one of another account counts."""
    customer, other = service.customer("large"), service.customer("large")
    backend.behaviour = stalls
    answers = at_once([partial(service.chat, customer, model="test/two")] * 5)
    assert [answer.status for answer in answers] == [502] * 5
    assert service.get(f"{MODELS}/test/two", other).json["available"] is True
    assert service.chat(other, model="test/two").status == 502
    assert service.get(f"{MODELS}/test/two", other).json["available"] is False


@pytest.mark.usefixtures("many_files")
def test_nobody_who_waits_for_a_completion_is_cut_off(service: RunningService, backend: ScriptedBackend) -> None:
    """Though they are the newest of a crowd: their account would pay for what they could not get."""
    customer = service.customer()
    [worker] = workers(service)
    before = open_files(worker)

    def asks() -> Answer:
        while True:  # whoever is cut off before the request was there has not waited, nor paid
            with suppress(ConnectionResetError, BrokenPipeError):
                return service.chat(customer)

    with ExitStack() as stack:
        for _ in range(OF_ADDRESS):
            stack.enter_context(socket.create_connection(("127.0.0.1", service.port)))
        with held(backend, *[asks] * ASKING) as asked:
            wait_until(lambda: open_files(worker) <= before + OF_ADDRESS + ASKING)  # with theirs to the backend
            backend.let_go()
            assert [future.result().status for future in asked] == [200] * ASKING
    assert service.account(customer).used == ASKING


@rows("decisions.added_by_this_project.11", "decisions.added_by_this_project.12")
@pytest.mark.usefixtures("many_files")
def test_a_caller_is_served_beside_a_crowd_that_never_reads(service: RunningService) -> None:
    """8,200 connections of one address: a caller from another one is served before, while and after.

    How soon is what `python -m bench.strangers` tells; without the bound there was no answer at all. What the address
    has beyond its bound is cut off at once, and the rest when its answers have not moved for 30 s.
    """
    customer = service.customer()
    [worker] = workers(service)
    before = open_files(worker)
    assert service.chat(customer).status == 200
    with ExitStack() as stack:
        for number in range(CROWD):
            client = stack.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_048)
            client.bind(("127.0.0.2", 0))
            client.settimeout(0)
            client.connect_ex(("127.0.0.1", service.port))
            with suppress(BlockingIOError, ConnectionError):  # it is not heard, or was cut off already
                client.send(NOT_READ)
            if number % 400 == 0:
                assert service.chat(customer).status == 200
        wait_until(lambda: open_files(worker) <= before + OF_ADDRESS + 10)
        assert [service.chat(customer).status for _ in range(20)] == [200] * 20
        assert open_files(worker) > before + OF_ADDRESS / 2
        wait_until(lambda: open_files(worker) <= before + 10)
    assert service.chat(customer).status == 200
    assert '"connections_cut"' in service.log.read_text()
