"""`tarazu backend list` tells how the running processes see the backends."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tarazu.domain.calendar import iso_time
from tests.support.answers import look
from tests.support.at_once import wait_until
from tests.support.backend import ScriptedBackend, answers
from tests.support.patience import PATIENCE_S
from tests.support.service import CATALOGUE, RunningService, checked
from tests.support.stores import Store

PAIR = """
[models."test/pair"]
credits = 1
timeout_s = 5
[[models."test/pair".backends]]
kind = "openai"
url = "BACKEND"
model = "later"
priority = 1
[[models."test/pair".backends]]
kind = "openai"
url = "BACKEND"
model = "off"
enabled = false
[[models."test/pair".backends]]
kind = "openai"
url = "BACKEND"
model = "first"
"""
WORKERS = 2


@pytest.fixture
def service(store: Store, backend: ScriptedBackend, tmp_path: Path) -> Iterator[RunningService]:
    """A service of two workers."""
    with checked(
        RunningService(
            tmp_path,
            backend.url,
            catalogue=CATALOGUE + PAIR,
            server=f"workers = {WORKERS}",
            database_url=store.new_books(tmp_path),
        )
    ) as running:
        yield running


def listed(service: RunningService, *model: str) -> dict[str, dict[str, Any]]:
    """List backends, by name."""
    return {each["backend"]: each for each in service.json("backend", "list", *model)}


def resting(service: RunningService, state: str) -> int:
    """Count the processes that have written that they leave a backend alone."""
    return len(look(service, "SELECT * FROM backend_rests WHERE state = :state", state=state))


def test_a_backend_is_told_to_rest_in_all_processes_that_leave_it_alone(
    service: RunningService, backend: ScriptedBackend
) -> None:
    """Busy with its fault and its instants; the others stay ready."""
    customer = service.customer()
    backend.behaviour = answers(b"", status=429, retry_after="200")
    before = datetime.fromisoformat(iso_time(service.clock()))

    def are_busy() -> bool:
        service.chat(customer, model="test/hasty")  # over a connection of its own: by and by each worker gets one
        return resting(service, "busy") == WORKERS

    wait_until(are_busy, timeout_s=PATIENCE_S)
    found = listed(service)
    assert {name: each["health"] for name, each in found.items() if each["health"] != "ready"} == {
        "test/hasty#1": "busy",
        "test/pair#2": "disabled",
    }
    rests = found["test/hasty#1"]["rests"]
    assert len({rest["process"] for rest in rests}) == WORKERS
    assert {(rest["state"], rest["fault"]) for rest in rests} == {("busy", "busy")}
    for rest in rests:
        since, until = datetime.fromisoformat(rest["since"]), datetime.fromisoformat(rest["until"])
        assert before - timedelta(seconds=1) <= since
        assert abs(until - since - timedelta(seconds=200)) <= timedelta(seconds=1)  # each is cut to whole seconds


def test_a_backend_that_is_trusted_again_is_ready(service: RunningService, backend: ScriptedBackend) -> None:
    """Once every process that left it alone has had a reply from it."""
    customer = service.customer()
    backend.behaviour = answers(b"", status=500)

    def is_tripped() -> bool:
        service.chat(customer, model="test/hasty")  # each trial that fails lengthens the rest
        return resting(service, "tripped") == WORKERS

    wait_until(is_tripped, timeout_s=PATIENCE_S)
    backend.reset()

    def is_trusted() -> bool:
        service.chat(customer, model="test/hasty")
        return resting(service, "tripped") == 0

    wait_until(is_trusted, timeout_s=PATIENCE_S)
    found = listed(service)["test/hasty#1"]
    assert (found["health"], found["rests"]) == ("ready", [])


def test_a_model_is_listed_alone_in_the_order_of_its_priorities(
    service: RunningService, backend: ScriptedBackend
) -> None:
    """With all that its settings say, and the names that are in the log."""
    found = listed(service, "test/pair")
    assert list(found) == ["test/pair#2", "test/pair#3", "test/pair#1"]
    assert found["test/pair#1"] == {
        "model": "test/pair",
        "backend": "test/pair#1",
        "kind": "openai",
        "url": backend.url,
        "host": backend.url.removeprefix("http://").removesuffix("/v1"),
        "server_model": "later",
        "priority": 1,
        "weight": 1,
        "max_concurrency": None,
        "timeout_s": 5.0,
        "health": "ready",
        "rests": [],
    }
    assert backend.received == []
