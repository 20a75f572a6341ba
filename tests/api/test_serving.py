"""The processes of the service: starts, stops and deaths lose nothing, double nothing, and leave nothing running."""

import http.client
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from tarazu.service.auditing import audit_books
from tests.support.answers import assert_paid, credits_left, look, read_usage, states_of, statuses
from tests.support.at_once import held, wait_until
from tests.support.backend import ScriptedBackend
from tests.support.envelopes import assert_own_error
from tests.support.patience import PATIENCE_S
from tests.support.processes import children, has_ended, pass_deadlines, threads, workers
from tests.support.rows import rows
from tests.support.runs_first import runs_first
from tests.support.service import CATALOGUE, CHAT, MODELS, PATIENT, USAGE, RunningService
from tests.support.stores import Store
from tests.support.windows import Places, places, within_one_minute

WORKERS = 2
IN_FLIGHT = 6
FIRST_CHILDREN = 2
"""What forks workers, and the first worker."""


@contextmanager
def _running(
    folder: Path,
    store: Store,
    backend: ScriptedBackend,
    server: str = "",
    environ: Mapping[str, str] | None = None,
    catalogue: str = CATALOGUE,
) -> Iterator[RunningService]:
    """A service of the test's own; at the end its books must balance, and nothing of it run any more."""
    url = store.new_books(folder)
    with RunningService(
        folder, backend.url, server=server, database_url=url, environ=environ, catalogue=catalogue
    ) as service:
        processes = {service.process.pid, *workers(service)}
        yield service
        assert audit_books(service.engine, service.clock).differences == ()
        processes |= {service.process.pid, *workers(service)}
    wait_until(lambda: all(map(has_ended, processes)))


def test_a_restart_keeps_everything(store: Store, backend: ScriptedBackend, tmp_path: Path) -> None:
    """Credits, windows, revoked keys and the intake switch are as before the stop, which ends with status 0."""
    with _running(tmp_path, store, backend) as service:

        def scenario() -> tuple[bool, list[int], tuple[int, int], Places]:
            customer = service.customer("three", balance=5, limit_per_minute=3)
            revoked = service.another_key(customer)
            service.provisioning.revoke_key(revoked.key_id)
            assert_paid(service.chat(customer, model="test/two"), 2, "plan")
            assert_paid(service.chat(customer, model="test/two"), 2, "api_balance")
            before = read_usage(service, customer)
            service.provisioning.stop_intake(retry_after_s=7)
            assert service.stop() == 0
            service.start()
            kept = read_usage(service, customer) == before
            answers = [service.chat(customer)]
            service.provisioning.resume_intake()
            answers += [service.chat(key) for key in (customer, customer, revoked)]
            figures = [answer.status for answer in answers]
            return kept, figures, credits_left(service, customer), places(service, customer)

        assert within_one_minute(scenario) == (True, [503, 200, 429, 401], (0, 3), Places(3, 3))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_finishes_what_is_being_served(
    store: Store, backend: ScriptedBackend, tmp_path: Path, number: signal.Signals
) -> None:
    """No new connection is taken, the requests in flight get their replies, and the status is 0."""
    with _running(tmp_path, store, backend) as service:
        customer = service.customer("large")
        with held(backend, *[partial(service.chat, customer)] * IN_FLIGHT) as asked:
            service.process.send_signal(number)
            wait_until(lambda: not _listens(service.port))
            assert not any(future.done() for future in asked)
        assert statuses([future.result() for future in asked]) == [200] * IN_FLIGHT
        assert service.process.wait(PATIENCE_S) == 0
        assert states_of(service, customer) == ["charged"] * IN_FLIGHT
        assert "worker_killed" not in service.log.read_text()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_is_heard_by_a_worker_that_is_just_starting(
    store: Store, backend: ScriptedBackend, tmp_path: Path, number: signal.Signals
) -> None:
    """It has its own answer to signals, not its parent's from before the fork: all ends at once, with status 0."""
    with RunningService(tmp_path, backend.url, database_url=store.new_books(tmp_path)) as service:
        service.stop()
        log = tmp_path / "short.log"
        with log.open("wb") as lines:
            service.process = subprocess.Popen(service.process.args, stdout=lines, stderr=lines, env=service.environ)
        wait_until(lambda: len(children(service)) == FIRST_CHILDREN, timeout_s=PATIENCE_S)
        _, worker = sorted(children(service))
        service.process.send_signal(number)
        assert service.process.wait(PATIENCE_S) == 0
        wait_until(lambda: has_ended(worker))
        assert "worker_killed" not in log.read_text()


def test_a_stop_takes_no_worker_for_alive_that_has_ended(
    store: Store, backend: ScriptedBackend, tmp_path: Path
) -> None:
    """However slow the parent is to take note of the end: nobody is said to be killed, and the status is 0."""
    slow = runs_first(tmp_path, SLOW_TO_NOTE)
    with _running(tmp_path, store, backend, f"workers = {WORKERS}", slow) as service:
        wait_until(lambda: len(workers(service)) == WORKERS)
        assert service.stop() == 0
        assert "worker_killed" not in service.log.read_text()


def test_workers_that_have_missed_a_signal_are_told_again(
    store: Store, backend: ScriptedBackend, tmp_path: Path
) -> None:
    """As one does that is told while its event loop is paused: also while another one ends its request."""
    deaf = runs_first(tmp_path, DEAF_TO_THE_FIRST)
    with RunningService(
        tmp_path,
        backend.url,
        catalogue=PATIENT,
        server=f"workers = {WORKERS}",
        database_url=store.new_books(tmp_path),
        environ=deaf,
    ) as service:
        wait_until(lambda: len(workers(service)) == WORKERS)
        with held(backend, partial(service.chat, service.customer())):
            service.process.send_signal(signal.SIGTERM)
            wait_until(lambda: len(workers(service)) == 1)
        assert service.process.wait(PATIENCE_S) == 0
        assert "worker_killed" not in service.log.read_text()


DEAF_TO_THE_FIRST = '''"""Let workers miss the first signal that tells them to stop."""
import uvloop

add_signal_handler = uvloop.Loop.add_signal_handler


def add_deaf(loop, number, callback, *arguments):
    missed = []

    def hear():
        if missed:
            callback(*arguments)
        missed.append(number)

    add_signal_handler(loop, number, hear)


uvloop.Loop.add_signal_handler = add_deaf
'''

SLOW_TO_NOTE = '''"""Let whoever hears of the end of a process think it over, and the main thread come too late."""
import os
import threading
import time

_waitid = os.waitid


def waitid(*arguments):
    if threading.current_thread() is threading.main_thread():
        time.sleep(0.1)
    ended = _waitid(*arguments)
    time.sleep(0.5)
    return ended


os.waitid = waitid
'''


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def test_a_worker_that_is_killed_is_replaced(store: Store, backend: ScriptedBackend, tmp_path: Path) -> None:
    """A new one serves soon; what the old one had in flight is swept back after its deadline, and nothing is lost."""
    with _running(tmp_path, store, backend) as service:
        customer = service.customer("three")
        [worker] = workers(service)
        with held(backend, partial(service.chat, customer)) as [asked]:
            os.kill(worker, signal.SIGKILL)
            with pytest.raises((OSError, http.client.HTTPException)):
                asked.result()
        wait_until(lambda: [pid for pid in workers(service) if pid != worker] != [])
        wait_until(lambda: _is_well(service), timeout_s=PATIENCE_S)
        assert credits_left(service, customer) == (2, 0)
        assert service.chat(customer).status == 200
        assert states_of(service, customer) == ["held", "charged"]

        pass_deadlines(service)
        wait_until(lambda: states_of(service, customer) == ["swept", "charged"])
        assert credits_left(service, customer) == (2, 0)
        assert service.process.poll() is None


def _is_well(service: RunningService) -> bool:
    try:
        return service.get("/health").status == 200
    except (OSError, http.client.HTTPException):
        return False


def test_a_power_cut_with_requests_in_flight_costs_nobody_a_credit(
    store: Store, backend: ScriptedBackend, tmp_path: Path
) -> None:
    """All is killed: the books balance as they are, the holds end after their deadline, and all is as before."""
    with _running(tmp_path, store, backend) as service:
        customer = service.customer("three", balance=10)
        assert service.chat(customer).status == 200
        calls = [partial(service.chat, customer, model="test/two")] * 4
        with held(backend, *calls) as asked:
            assert credits_left(service, customer) == (0, 4)
            service.kill()
            for future in asked:
                with pytest.raises((OSError, http.client.HTTPException)):
                    future.result()
        assert states_of(service, customer) == ["charged", *["held"] * 4]
        assert audit_books(service.engine, service.clock).differences == ()

        pass_deadlines(service)
        service.start()
        wait_until(lambda: states_of(service, customer) == ["charged", *["swept"] * 4])
        assert credits_left(service, customer) == (2, 10)
        assert look(service, "SELECT requests, credits FROM daily_usage") == [(1, 1)]


def test_workers_do_not_outlive_the_process_that_started_them(
    store: Store, backend: ScriptedBackend, tmp_path: Path
) -> None:
    """When only the first process is killed, its workers finish what they serve and end; the port is free at once."""
    with _running(tmp_path, store, backend, f"workers = {WORKERS}", catalogue=PATIENT) as service:
        customer = service.customer("large")
        pids = workers(service)
        assert len(pids) == WORKERS
        with held(backend, partial(service.chat, customer)) as [asked]:
            service.process.kill()
            service.process.wait()
            wait_until(lambda: not _listens(service.port))
            service.start()
        assert asked.result().status == 200
        wait_until(lambda: all(map(has_ended, pids)))
        assert service.chat(customer).status == 200
        assert service.account(customer).used == 2


def test_of_two_services_that_start_at_once_on_a_port_one_is_refused(
    store: Store, backend: ScriptedBackend, tmp_path: Path
) -> None:
    """The port is never shared by two; the one that comes too late says so, and ends with status 1."""
    with RunningService(tmp_path, backend.url, database_url=store.new_books(tmp_path)) as first:
        first.stop()
        with (tmp_path / "second.log").open("wb") as log:
            second = subprocess.Popen(
                [sys.executable, "-m", "tarazu", "serve", "--config", str(first.config)],
                stdout=log,
                stderr=log,
                env=first.environ,
            )
            first.process = subprocess.Popen(second.args, stdout=log, stderr=log, env=first.environ)
        both = [first.process, second]
        try:
            wait_until(lambda: any(process.poll() is not None for process in both), timeout_s=PATIENCE_S)
            [refused] = [process for process in both if process.poll() is not None]
            [serving] = [process for process in both if process is not refused]
            first.process = serving
            assert refused.returncode == 1
            wait_until(lambda: _is_well(first), timeout_s=PATIENCE_S)
        finally:
            for process in both:
                if process is not first.process:
                    process.terminate()
                    process.wait(PATIENCE_S)
        message = f"tarazu: Cannot listen on 127.0.0.1:{first.port}: Address already in use."
        assert message in (tmp_path / "second.log").read_text()


def test_no_thread_of_a_worker_interrupts_another(service: RunningService) -> None:
    """Granian's threads, the event loop's and the ledger's run until they wait; those of the parent as usual."""
    assert service.chat(service.customer()).status == 200
    [worker] = workers(service)
    assert {os.sched_getscheduler(thread) for thread in threads(worker)} == {os.SCHED_BATCH}
    assert {os.sched_getscheduler(thread) for thread in threads(service.process.pid)} == {os.sched_getscheduler(0)}


NO_ROUTES = (
    "/api",
    "/api/v1",
    "/api/v1/",
    "/v1/models",
    "/chat/completions",
    CHAT + "/",
    USAGE + "/",
    "/health/x",
)
WRONG_METHODS = (
    ("GET", CHAT, {"POST"}),
    ("PUT", CHAT, {"POST"}),
    ("OPTIONS", CHAT, {"POST"}),
    ("POST", MODELS, {"GET", "HEAD"}),
    ("DELETE", MODELS + "/test/one", {"GET", "HEAD"}),
    ("PATCH", USAGE, {"GET", "HEAD"}),
    ("POST", "/health", {"GET", "HEAD"}),
)


@rows("decisions.order_of_checks.1", "decisions.errors.1")
@pytest.mark.parametrize("path", NO_ROUTES)
def test_a_path_that_does_not_exist_is_404(service: RunningService, path: str) -> None:
    """Before any look at a key: 404 for every method."""
    for method in ("GET", "POST", "DELETE"):
        assert_own_error(service.request(method, path), 404)
    assert_own_error(service.get(path, service.customer()), 404)


@rows("decisions.order_of_checks.1", "decisions.errors.1")
@pytest.mark.parametrize(("method", "path", "allowed"), WRONG_METHODS)
def test_a_method_that_does_not_exist_is_405_with_allow(
    service: RunningService, method: str, path: str, allowed: set[str]
) -> None:
    """Before any look at a key: 405 and the methods that there are."""
    answer = service.request(method, path)
    assert_own_error(answer, 405)
    assert {each.strip() for each in answer.headers["allow"].split(",")} == allowed
