"""A drain and a stop tell callers that keep their connections before these are closed: none is cut off."""

import http.client
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.commands import run_process
from tests.support.answers import look
from tests.support.at_once import wait_until
from tests.support.backend import ScriptedBackend
from tests.support.patience import PATIENCE_S
from tests.support.rows import rows
from tests.support.service import CHAT, Customer, RunningService, checked, events, send

WORKERS = 2
CALLERS = 12
ANSWERS_MIN = 5
"""Of each caller, before the stop."""


@pytest.fixture
def service(backend: ScriptedBackend, tmp_path: Path) -> Iterator[RunningService]:
    """A service of two workers, for each test its own: it ends."""
    with checked(RunningService(tmp_path, backend.url, server=f"workers = {WORKERS}")) as running:
        yield running


class Caller(threading.Thread):
    """One that keeps its connection, and asks until none is to be had; counts statuses, and what went wrong."""

    def __init__(self, service: RunningService, customer: Customer, pause_s: float) -> None:
        super().__init__()
        self.answers: Counter[object] = Counter()
        self._port, self._customer, self._pause_s = service.port, customer, pause_s

    def run(self) -> None:
        """Ask, and ask again; what a server closes is opened anew."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE_S)
        headers = {"Authorization": self._customer.bearer, "Content-Type": "application/json"}
        while True:
            if connection.sock is None:
                try:
                    connection.connect()
                except OSError:  # the service has ended
                    return
            try:
                self.answers[send(connection, "POST", CHAT, '{"prompt": "Hello"}', headers).status] += 1
            except (OSError, http.client.HTTPException) as error:
                self.answers[type(error).__name__] += 1
                return
            time.sleep(self._pause_s)


@rows("decisions.added_by_this_project.19")
@pytest.mark.parametrize("how", ["SIGTERM", "tarazu drain"])
def test_no_caller_is_cut_off(service: RunningService, how: str) -> None:
    """Each request that was sent is answered, and paid for once."""
    customer = service.customer()
    callers = [Caller(service, customer, number % 4 / 100) for number in range(CALLERS)]
    for caller in callers:
        caller.start()
    wait_until(lambda: all(caller.answers[200] >= ANSWERS_MIN for caller in callers))
    if how == "SIGTERM":
        service.process.send_signal(signal.SIGTERM)
    else:
        ran = service.run("drain", "--for", "1s")
        assert (ran.returncode, ran.stderr) == (0, "")
        assert "The service has ended." in ran.stdout
    assert service.process.wait(PATIENCE_S) == 0
    for caller in callers:
        caller.join(PATIENCE_S)
    assert [set(caller.answers) for caller in callers] == [{200}] * CALLERS
    total = sum(caller.answers[200] for caller in callers)
    assert look(service, "SELECT state, count(*) FROM requests GROUP BY state") == [("charged", total)]


@rows("decisions.added_by_this_project.18", "decisions.added_by_this_project.19")
def test_while_it_drains_it_is_not_ready_and_each_answer_closes_its_connection(service: RunningService) -> None:
    """At once, in all workers; health and life are as ever, and so are replies."""
    customer = service.customer()
    assert service.get("/readyz").status == 200
    draining = threading.Thread(target=service.run, args=("drain", "--for", "1h"))
    draining.start()
    wait_until(lambda: events(service, "draining") != [])
    wait_until(lambda: all(service.get("/readyz").status == 503 for _ in range(CALLERS)))
    answers = [service.chat(customer), service.get("/livez"), service.get("/health")]
    assert [(answer.status, answer.headers["connection"]) for answer in answers] == [(200, "close")] * 3
    assert service.get("/readyz").json == {
        "status": "not ready",
        "problems": ["It is draining: ask another instance."],
    }
    ran = service.run("drain")
    assert (ran.returncode, ran.stderr) == (1, "tarazu: it is draining already\n")
    assert service.stop() == 0
    draining.join(PATIENCE_S)


def test_a_service_that_has_ended_is_not_found(service: RunningService) -> None:
    """The commands say so, and how one is started."""
    assert service.run("reload").returncode == 0
    assert service.stop() == 0
    for command in ("reload", "drain"):
        ran = service.run(command)
        assert (ran.returncode, ran.stdout) == (1, "")
        assert "No service that runs by this configuration was found on this machine." in ran.stderr
        assert "serve --config" in ran.stderr


def test_a_service_is_reached_though_its_file_has_been_moved_away(service: RunningService) -> None:
    """From its folder, by the name that the file had; from elsewhere the refusal says which services do run."""
    elsewhere = service.folder / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "tarazu.toml").touch()
    ran = service.run("reload", config=elsewhere / "tarazu.toml")
    assert ran.returncode == 1
    assert f"There is one, process {service.process.pid}, by {service.config}" in ran.stderr
    assert "Start one with" in ran.stderr.splitlines()[-1]
    service.config.rename(elsewhere / "away.toml")
    for arguments, told in ((("reload",), "cannot be read"), (("drain", "--for", "0s"), "The service has ended.")):
        done = run_process(*arguments, folder=service.folder)
        assert told in done.out + done.err
    assert service.process.wait(PATIENCE_S) == 0
