"""Workers that stand still: they are replaced, hold up no reload, and charge no caller who has left meanwhile."""

import http.client
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.answers import look
from tests.support.at_once import at_once, held, wait_until
from tests.support.backend import ScriptedBackend
from tests.support.patience import PATIENCE_S
from tests.support.processes import children, has_ended, is_named, open_files, workers
from tests.support.rows import rows
from tests.support.service import CHAT, PATIENT, Customer, RunningService, checked, events
from tests.support.stores import Store

WORKERS = 2
MANY = 16
"""Callers enough that every worker gets some."""
REPLACED_WITHIN_S = 15
LEAVES_AFTER_S = 2.0
"""Far longer than a worker that runs takes: who leaves in the moment of the reply pays, as everywhere."""
PAUSE_S = 3.0
"""Of all workers; shorter than what they are replaced for."""


@pytest.fixture(scope="module")
def service(
    store: Store, module_backend: ScriptedBackend, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningService]:
    """A service of two workers, where a request waits long for its backend."""
    folder = tmp_path_factory.mktemp("service")
    running = RunningService(
        folder,
        module_backend.url,
        catalogue=PATIENT,
        server=f"workers = {WORKERS}",
        database_url=store.new_books(folder),
        environ={"TMPDIR": str(tmp_path_factory.mktemp("temporary"))},
    )
    with checked(running):
        yield running


@pytest.fixture(autouse=True)
def all_work(service: RunningService) -> None:
    """Begin with workers that are there and follow."""
    assert service.run("reload").returncode == 0


@contextmanager
def stopped(*processes: int) -> Iterator[None]:
    """Let the processes stand still while the block runs; those that are no more by then have been replaced."""
    for process in processes:
        os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGCONT)


def ask(service: RunningService, customer: Customer, timeout_s: float = LEAVES_AFTER_S) -> int | None:
    """Ask for a completion; leave, with None, when it takes too long."""
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=timeout_s)
    headers = {"Authorization": customer.bearer, "Content-Type": "application/json"}
    try:
        connection.request("POST", CHAT, json.dumps({"prompt": "Hello"}), headers)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def charged(service: RunningService, customer: Customer) -> int:
    """Count what the account was charged for."""
    [(number,)] = look(
        service,
        "SELECT count(*) FROM requests WHERE state = 'charged' AND account_id = :id",
        id=customer.account_id,
    )
    return int(number)


def test_a_worker_that_stands_still_is_replaced_and_nobody_who_left_is_charged(
    service: RunningService, backend: ScriptedBackend
) -> None:
    """Under load: the other one serves on, and who met the one that stands still pays nothing, then or later."""
    customer, statuses, is_over = service.customer(), list[int | None](), threading.Event()
    stuck, other = workers(service)

    def load() -> None:
        while not is_over.is_set():
            statuses.append(ask(service, customer))

    loads = [threading.Thread(target=load) for _ in range(4)]
    with held(backend, *[partial(_asked, service, customer)] * MANY) as asked, stopped(stuck):
        began_s = time.monotonic()
        backend.let_go()
        for each in loads:
            each.start()
        wait_until(lambda: has_ended(stuck) and len(workers(service)) == WORKERS)
        assert time.monotonic() - began_s < REPLACED_WITHIN_S
        is_over.set()
        for each in loads:
            each.join()
    statuses += [future.result().status for future in asked]
    assert at_once([partial(ask, service, customer, PATIENCE_S)] * MANY) == [200] * MANY
    assert charged(service, customer) == statuses.count(200) + MANY
    assert other in workers(service)
    assert [event["worker_pid"] for event in events(service, "worker_stuck")][-1] == stuck


def _is_replaced(service: RunningService, killed: int) -> bool:
    return has_ended(killed) and len(workers(service)) == WORKERS


class _Status(int):
    """A status as the answer that has it."""

    @property
    def status(self) -> int:
        """The status; 0 where there was no answer."""
        return int(self)


def _asked(service: RunningService, customer: Customer) -> Any:
    return _Status(ask(service, customer, LEAVES_AFTER_S + PAUSE_S) or 0)


@rows("decisions.added_by_this_project.19")
def test_after_a_pause_no_caller_who_left_is_charged(service: RunningService, backend: ScriptedBackend) -> None:
    """Some were with the backend when the workers stood still, others asked then: nobody waited for the answer."""
    customer = service.customer()
    paused = workers(service)
    with held(backend, *[partial(_asked, service, customer)] * MANY) as asked, stopped(*paused):
        backend.let_go()
        assert at_once([partial(ask, service, customer)] * MANY) == [None] * MANY
        assert {future.result().status for future in asked} == {0}
    assert at_once([partial(ask, service, customer, PATIENCE_S)] * MANY) == [200] * MANY
    wait_until(lambda: look(service, "SELECT 1 FROM requests WHERE state = 'held' AND deadline_ms > 0") == [])
    assert charged(service, customer) == MANY
    assert workers(service) == paused
    assert len(events(service, "event_loop_stood_still")) >= 1


def test_a_reload_replaces_a_worker_that_does_not_hear_it(service: RunningService) -> None:
    """The command waits until all workers serve by the new prices, and no worker with the old ones lives on."""
    customer = service.customer()
    text = service.config.read_text()
    service.config.write_text(text.replace("credits = 1\npayg_amount = 150", "credits = 7\npayg_amount = 150"))
    deaf = workers(service)[0]
    try:
        with stopped(deaf):
            ran = service.run("reload")
        assert ran.returncode == 0, ran.stderr
        assert has_ended(deaf)
        assert events(service, "configuration_reloaded")[-1]["workers"] == f"{WORKERS} of {WORKERS}"
        answers = at_once([partial(service.chat, customer, model="test/one")] * MANY)
        assert {answer.json["usage"]["credits"] for answer in answers} == {7}
    finally:
        service.config.write_text(text)
        assert service.run("reload").returncode == 0


def test_workers_are_replaced_at_once_and_also_without_what_forks_them(service: RunningService) -> None:
    """All at once, too; and all of them follow the next change, while nothing of the service lies in a folder."""
    before = workers(service)
    for process in before:
        os.kill(process, signal.SIGKILL)
    wait_until(lambda: len(workers(service)) == WORKERS and not {*workers(service)} & {*before})
    assert service.run("reload").returncode == 0
    [forks] = [child for child in children(service) if is_named(child, "tarazu forks")]
    os.kill(forks, signal.SIGKILL)
    files = list[int]()
    for _ in range(2):
        [killed, _] = workers(service)
        os.kill(killed, signal.SIGKILL)
        wait_until(partial(_is_replaced, service, killed))
        assert service.run("reload").returncode == 0
        files.append(open_files(service.process.pid))
    wait_until(lambda: open_files(service.process.pid) <= files[0])  # that of the last command is closed a moment later
    assert len(events(service, "fork_server_lost")) == 1
    assert list(Path(service.environ["TMPDIR"]).iterdir()) == []
