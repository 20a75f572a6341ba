"""The log of a running service: what each line is of, what a flood becomes, and that nobody waits for its reader."""

import json
import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.support.at_once import wait_until
from tests.support.backend import ScriptedBackend, answers
from tests.support.odd_keys import mistyped
from tests.support.processes import workers
from tests.support.rows import rows
from tests.support.runs_first import runs_first
from tests.support.service import CATALOGUE, CHAT, MODELS, USAGE, Answer, Customer, RunningService, checked, events
from tests.support.stores import Store

ACCESS = "[logs]\naccess = true\n"
PROMPT = "prompt-canary-91bd"
NOT_READ = 3_000
"""Lines that nobody reads: several times what a pipe holds."""
SLOWER_MAX = 3
"""So many times as long may the quickest answer take when the pipe is full; if something waited, none would come."""


@pytest.fixture(scope="module")
def service(
    store: Store, module_backend: ScriptedBackend, tmp_path_factory: pytest.TempPathFactory, catalogue: str
) -> Iterator[RunningService]:
    """A service with an access log, whose standard error goes to a file of its own."""
    folder = tmp_path_factory.mktemp("service")
    url = store.new_books(folder)
    with checked(RunningService(folder, module_backend.url, catalogue=ACCESS + catalogue, database_url=url)) as running:
        yield running


def line_of(service: RunningService, answer: Answer, event: str = "request") -> dict[str, Any]:
    """Find the line of an event that belongs to an answer."""
    request_id = answer.headers["x-request-id"]
    wait_until(lambda: any(line.get("request_id") == request_id for line in service.logged(event)))
    (line,) = (line for line in service.logged(event) if line.get("request_id") == request_id)
    return line


def test_a_completion_has_its_line(service: RunningService) -> None:
    """With whose it was, what was asked, what it cost and how long it took; and with nothing of its content."""
    customer = service.customer()
    answer = service.chat(customer, PROMPT)
    line = line_of(service, answer)
    figures = {name: line.pop(name) for name in ("timestamp", "pid", "duration_ms", "backend_ms")}
    assert line == {
        "level": "info",
        "event": "request",
        "process": "worker 1",
        "request_id": answer.headers["x-request-id"],
        "completion_id": answer.json["id"],
        "method": "POST",
        "path": CHAT,
        "status": 200,
        "account_id": customer.account_id,
        "key_id": customer.key_id,
        "model": "test/one",
        "backend": "test/one#1",
        "tries": 1,
        "credits": 1,
        "address": "127.0.0.1",
        "bytes": len(answer.body),
    }
    assert figures["duration_ms"] >= figures["backend_ms"] >= 0
    assert figures["pid"] in workers(service)
    assert PROMPT not in service.log.read_text()


def test_a_refusal_has_its_code_and_its_sender(service: RunningService, backend: ScriptedBackend) -> None:
    """Also where nothing was charged, and where the key is known and not taken."""
    customer, limited = service.customer(), service.customer(limit_per_minute=1)
    service.chat(limited)
    backend.behaviour = answers(b"{}", 500)
    made = [
        (service.chat(customer), "upstream_error", customer),
        (service.chat(customer, model="no/such"), "model_not_found", customer),
        (service.chat(limited), "rate_limit_exceeded", limited),
        (service.post(None, {"prompt": PROMPT}), "missing_api_key", None),
    ]
    for answer, code, sender in made:
        line = line_of(service, answer)
        assert (line["status"], line["code"]) == (answer.status, code)
        assert line.get("account_id") == (sender and sender.account_id)
        assert "credits" not in line
    assert line_of(service, made[0][0])["tries"] >= 1


def test_a_path_is_its_route(service: RunningService) -> None:
    """What stands for a parameter, or where nothing is, may be a secret."""
    customer = service.customer()
    paths = {
        USAGE: USAGE,
        f"{MODELS}/test/one": f"{MODELS}/{{model_id}}",
        f"/panel/invitation/{PROMPT}": "/panel/invitation/{token}",
        f"/{customer.secret}": "unmatched",
        f"/panel/{customer.secret}": "unmatched",
        "/health?key=canary": "/health",
    }
    told = {path: line_of(service, service.get(path, customer))["path"] for path in paths}
    assert told == paths
    assert customer.secret not in service.log.read_text()


@rows("decisions.reply.5")
def test_the_lines_of_a_request_carry_its_id(service: RunningService, backend: ScriptedBackend) -> None:
    """So what a caller was answered with leads to what went wrong."""
    customer = service.customer()
    backend.behaviour = answers(b"{}", 500)
    since = len(service.log.read_text())
    answer = service.chat(customer, model="test/two")
    found = service.logged("backend_failed", since=since, least=3)
    assert {line["request_id"] for line in found} == {answer.headers["x-request-id"]}
    assert [line["tries"] for line in found] == [1, 2, 3]
    assert {(line["account_id"], line["model"], line["detail"]) for line in found} == {
        (customer.account_id, "test/two", "500")
    }
    assert all(line["duration_ms"] >= 0 for line in found)


def test_a_backend_that_trips_and_comes_back_has_its_lines(service: RunningService, backend: ScriptedBackend) -> None:
    """One each, however many requests have failed."""
    since = len(service.log.read_text())
    customer = service.customer()
    backend.behaviour = answers(b"{}", 500)
    wait_until(lambda: service.chat(customer, model="test/free").status == 502 and bool(tripped(service, since)))
    backend.reset()
    wait_until(lambda: service.chat(customer, model="test/free").status == 200)
    (line,) = service.logged("backend_recovered", since=since)
    assert line["backend"] == "test/free#1"
    assert len(tripped(service, since)) == 1


def tripped(service: RunningService, since: int) -> list[str]:
    """List the lines that a backend of one model has tripped."""
    text = service.log.read_text()[since:]
    return [line for line in text.splitlines() if '"backend_tripped"' in line and "test/free" in line]


def test_refused_keys_are_counted(service: RunningService) -> None:
    """A line a minute for each key that is known, and one for all that are not."""
    since = len(service.log.read_text())
    revoked = service.customer()
    service.provisioning.revoke_key(revoked.key_id)
    for _ in range(3):
        assert service.chat(revoked).status == 401
        assert service.get(USAGE, revoked).status == 401
    unknown = Customer("", "", mistyped(revoked.secret))
    for _ in range(3):
        assert service.get(USAGE, unknown).status == 401
    lines = service.logged("keys_refused", since=since, least=2)
    assert {line.get("key_id") for line in lines} == {revoked.key_id, None}
    assert len(lines) == 2
    assert {line["address"] for line in lines} == {"127.0.0.1"}
    assert revoked.secret not in service.log.read_text()


def test_refused_tokens_are_told(service: RunningService) -> None:
    """With the address, and without the token."""
    since = len(service.log.read_text())
    for _ in range(2):
        service.request("GET", "/api/admin/v1/accounts", headers={"Authorization": f"Bearer {PROMPT}"})
    line, *_ = service.logged("token_refused", since=since)
    assert (line["reason"], line["address"]) == ("no good token", "127.0.0.1")
    assert PROMPT not in service.log.read_text()


def test_every_line_is_json_from_the_start_to_the_end(tmp_path: Path, module_backend: ScriptedBackend) -> None:
    """Those about a worker that was killed as well; each with its process."""
    service = RunningService(tmp_path, module_backend.url, server="workers = 2")
    written = tmp_path / "stderr"
    with written.open("wb") as stderr:
        service.start(stderr.fileno())

    def events() -> list[dict[str, Any]]:
        return [json.loads(line) for line in written.read_text().rpartition("\n")[0].splitlines()]

    def seen(event: str, times: int = 1) -> bool:
        return [line["event"] for line in events()].count(event) >= times

    try:
        wait_until(lambda: seen("worker_started", 2) and seen("listening"))
        os.kill(workers(service)[0], signal.SIGKILL)
        wait_until(lambda: seen("worker_started", 3))
    finally:
        assert service.stop() == 0
    lines = events()
    assert lines[-1]["event"] == "stopped"
    assert {"listening", "starting", "stopping", "worker_ended"} <= {line["event"] for line in lines}
    assert {line["process"] for line in lines} == {"parent", "worker 1", "worker 2"}
    assert len({line["pid"] for line in lines}) == 4
    assert all(re.fullmatch(r"[0-9T:.-]+Z", line["timestamp"]) for line in lines)


def test_a_reader_that_never_reads_slows_nobody(tmp_path: Path, module_backend: ScriptedBackend) -> None:
    """Each of thousands of failing requests has its line, and is answered, the last as quickly as the first.

    The service ends as well; what the pipe holds are whole lines.
    """
    service = RunningService(tmp_path, module_backend.url, catalogue=ACCESS + CATALOGUE)
    reader, writer = os.pipe()
    try:
        service.start(writer)
        os.close(writer)
        customer = service.customer()
        took_s = [timed(service, customer) for _ in range(NOT_READ)]
        assert min(took_s[-100:]) < SLOWER_MAX * min(took_s[:100])  # the least, since the machine may be busy
        assert service.stop() == 0
        held = b""
        while part := os.read(reader, 65_536):
            held += part
    finally:
        if service.process.poll() is None:
            service.kill()
        os.close(reader)
    assert len(held) > 32_768
    assert len([json.loads(line) for line in held.splitlines()]) < NOT_READ


def test_a_full_pipe_keeps_no_service_from_starting_and_stopping(
    tmp_path: Path, module_backend: ScriptedBackend
) -> None:
    """Not one of its lines can be written."""
    service = RunningService(tmp_path, module_backend.url)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with suppress(BlockingIOError):
        while True:
            os.write(writer, bytes(4_096))
    os.set_blocking(writer, True)
    try:
        service.start(writer)
        assert service.chat(service.customer()).status == 200
        assert service.stop() == 0
    finally:
        os.close(writer)
        os.close(reader)


def timed(service: RunningService, customer: Customer) -> float:
    """Ask, and tell how long the answer took, in seconds."""
    begin_s = time.monotonic()
    assert service.get(f"{MODELS}/no/such", customer).status == 404
    return time.monotonic() - begin_s


def test_more_workers_than_cores_are_told_in_our_words(tmp_path: Path, module_backend: ScriptedBackend) -> None:
    """Once, with both numbers, and not by the server's library."""
    environ = runs_first(tmp_path, "import os\nos.cpu_count = lambda: 1\n")
    running = RunningService(tmp_path, module_backend.url, server="workers = 2", environ=environ)
    with checked(running) as service:
        (line,) = events(service, "more_workers_than_cores")
        assert (line["workers"], line["cores"]) == (2, 1)
        assert not events(service, "library_message")
