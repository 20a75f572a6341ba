"""PostgreSQL hangs, or its connection breaks amidst a commit, which may have happened or not: the books are exact."""

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random

import pytest

from tarazu.store.ledger import WAIT_MAX_S
from tarazu.store.postgresql import ANSWER_GRACE_S, STATEMENT_TIMEOUT_MS
from tests.support.answers import credits_left, look, read_usage, states_of
from tests.support.at_once import held, wait_until
from tests.support.backend import ScriptedBackend
from tests.support.load import Load
from tests.support.processes import KIB, peak_bytes, workers
from tests.support.proxy import Cut, CuttingProxy
from tests.support.scale import scaled
from tests.support.service import RunningService
from tests.support.stores import PostgresqlStore, RestartableServer, restartable_server

pytestmark = pytest.mark.postgresql

CUTS = scaled(2, least=10)
AT_ONCE_S = 2
"""An answer without the books must come in this time, on a machine with other work."""
HEALTHY_S = 5
MEMORY_GROWTH_MAX = 32 * KIB * KIB


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestartableServer]:
    """The PostgreSQL server behind the proxy."""
    with restartable_server(tmp_path_factory.mktemp("server"), in_memory=True) as server:
        yield server


@pytest.fixture(scope="module")
def store(server: RestartableServer) -> PostgresqlStore:
    """The databases on the server."""
    return PostgresqlStore(server.url)


@pytest.fixture
def proxy(server: RestartableServer) -> Iterator[CuttingProxy]:
    """A proxy before the server."""
    with CuttingProxy(server.socket) as proxy:
        yield proxy


@pytest.fixture
def service(
    store: PostgresqlStore, proxy: CuttingProxy, backend: ScriptedBackend, tmp_path: Path
) -> Iterator[RunningService]:
    """A service whose connections go through the proxy."""
    url = proxy.url(store.new_books(tmp_path))
    with RunningService(tmp_path, backend.url, database_url=url) as service:
        read_usage(service, service.customer())  # what the service does in the books at its start is done by then
        yield service


@pytest.mark.parametrize("cut", Cut)
def test_a_charge_whose_commit_is_cut_gives_its_reply(
    service: RunningService, backend: ScriptedBackend, proxy: CuttingProxy, cut: Cut
) -> None:
    """Whether the commit has happened or not, the caller gets one reply and is charged once."""
    customer = service.customer("three")
    with held(backend, partial(service.chat, customer)) as [asked]:
        proxy.cut_next_commit(cut)
        backend.let_go()
        assert asked.result().status == 200
    proxy.wait_for_cut()
    assert states_of(service, customer) == ["charged"]
    assert credits_left(service, customer) == (2, 0)
    assert look(service, "SELECT requests, credits FROM daily_usage") == [(1, 1)]


@pytest.mark.parametrize("cut", Cut)
def test_an_admission_whose_commit_is_cut_costs_nothing(
    service: RunningService, backend: ScriptedBackend, proxy: CuttingProxy, cut: Cut
) -> None:
    """The caller is told 503 and nothing is asked of the model; a hold that was made after all is released at once."""
    customer = service.customer("basic")
    while True:
        proxy.cut_next_commit(cut)
        answer = service.chat(customer)
        proxy.wait_for_cut()
        if answer.status != 200:
            break  # else it was the commit of a sweep that was cut
    assert answer.code == "system_stopped"
    served = len(backend.received)

    wait_until(lambda: credits_left(service, customer) == (10 - served, 0))
    assert set(states_of(service, customer)) <= {"charged", "released"}
    assert service.chat(customer).status == 200
    assert len(backend.received) == served + 1


def test_commits_cut_under_load_leave_the_books_exact(
    service: RunningService, backend: ScriptedBackend, proxy: CuttingProxy, random: Random
) -> None:
    """However often the connection breaks, each reply is charged once, and nothing is charged without its reply."""
    load = Load(service, backend, random)
    with load:
        for _ in range(CUTS):
            load.wait_for_replies(random.randint(1, 8))
            proxy.cut_next_commit(random.choice(list(Cut)))
            proxy.wait_for_cut()
    load.assert_books_exact(charged_unseen=0)
    assert (load.cut, proxy.cuts) == (0, CUTS)


def test_a_database_that_hangs_under_load(
    service: RunningService, backend: ScriptedBackend, proxy: CuttingProxy, random: Random
) -> None:
    """Who comes first is told after a bounded wait, all others at once; then all is as before, commits in doubt too."""
    [worker] = workers(service)
    probe = service.customer("large")
    load = Load(service, backend, random)
    with load:
        load.wait_for_replies(CUTS)
        peak = peak_bytes(worker)
        with proxy.hanging():
            asked_s = time.monotonic()
            assert service.chat(probe).code == "system_stopped"
            assert time.monotonic() - asked_s < WAIT_MAX_S + AT_ONCE_S
            until_s = asked_s + STATEMENT_TIMEOUT_MS / 1_000 + ANSWER_GRACE_S + AT_ONCE_S
            while time.monotonic() < until_s:  # till the connection has been given up
                asked_s = time.monotonic()
                assert service.chat(probe).code == "system_stopped"
                assert service.get("/health").status == 503
                assert time.monotonic() - asked_s < 2 * AT_ONCE_S
        load.wait_for_replies(1, timeout_s=HEALTHY_S)
    assert workers(service) == [worker]
    assert peak_bytes(worker) - peak < MEMORY_GROWTH_MAX
    load.assert_books_exact(charged_unseen=0)
    assert load.cut == 0
