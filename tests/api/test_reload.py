"""SIGHUP puts a changed configuration in force in all workers, without dropping a request; a bad one is refused."""

import os
import re
import signal
import threading
from functools import partial
from typing import Any

import pytest
import trustme

from tarazu.service.reloading import Reloaded
from tests.support.answers import assert_paid, look
from tests.support.at_once import at_once, held, wait_until
from tests.support.backend import ScriptedBackend
from tests.support.certified import ca_file, serving
from tests.support.envelopes import assert_domain_error
from tests.support.processes import has_ended, workers
from tests.support.service import CATALOGUE, MODELS, Customer, RunningService, checked, events

WORKERS = 2
ALL = f"{WORKERS} of {WORKERS}"
MANY = 24
"""Connections enough that every worker gets some."""
RELOADS = 10
DEARER = CATALOGUE.replace("credits = 1\npayg_amount = 150", "credits = 7\npayg_amount = 150")
MOVED = DEARER.replace('"BACKEND"', '"BACKEND/moved"')
"""Dearer, and at other addresses: every pool is a new one."""
NARROW = """
[models."narrow"]
credits = 1
timeout_s = 60
[[models."narrow".backends]]
kind = "openai"
url = "BACKEND/old"
model = "m"
max_concurrency = 1
"""
SECRETIVE = """
[models."secretive"]
credits = 1
timeout_s = 20
[[models."secretive".backends]]
kind = "openai"
url = "URL"
model = "m"
api_key_file = "key"
ca_file = "ca.pem"
"""
LOCAL = """
[models."embedded"]
credits = 1
[[models."embedded".backends]]
kind = "local"
"""


@pytest.fixture
def service(backend: ScriptedBackend, tmp_path: Any) -> Any:
    """A service of two workers, for each test its own: what is sold is changed."""
    with checked(RunningService(tmp_path, backend.url, server=f"workers = {WORKERS}")) as running:
        reload(running)
        yield running


def reload(service: RunningService, *, outcome: str = "configuration_reloaded") -> dict[str, Any]:
    """Tell the service to read its configuration again, and wait for the outcome."""
    before = len(events(service, outcome))
    os.kill(service.process.pid, signal.SIGHUP)
    wait_until(lambda: len(events(service, outcome)) > before)
    return events(service, outcome)[before]


def rewrite(service: RunningService, backend: ScriptedBackend, catalogue: str) -> None:
    """Put another catalogue into the configuration; [server] and [database] stay."""
    head = service.config.read_text().split("[billing]")[0]
    service.config.write_text(head + re.sub(r'"BACKEND(?=["/])', f'"{backend.url}', catalogue.strip()))


def prices(service: RunningService, customer: Customer) -> set[int]:
    """Ask so often that every worker answers; tell what that cost."""
    answers = at_once([partial(service.chat, customer, model="test/one")] * MANY)
    return {answer.json["usage"]["credits"] for answer in answers}


def test_a_changed_price_is_in_force_in_every_worker(service: RunningService, backend: ScriptedBackend) -> None:
    """As soon as the log says so, and GET /models shows the same."""
    customer = service.customer()
    assert prices(service, customer) == {1}
    rewrite(service, backend, DEARER)
    assert reload(service)["workers"] == ALL
    assert prices(service, customer) == {7}
    shown = {
        model["pricing"]["credits"]
        for answer in at_once([partial(service.get, MODELS, customer)] * MANY)
        for model in answer.json["data"]
        if model["id"] == "test/one"
    }
    assert shown == {7}


def test_no_request_is_dropped_by_reloads(service: RunningService, backend: ScriptedBackend) -> None:
    """Under load, with prices and addresses that go to and fro, every request is answered, as before or as after."""
    customer, stop = service.customer(), threading.Event()
    costs: list[int] = []

    def ask() -> None:
        while not stop.is_set():
            answer = service.chat(customer, model="test/one")
            assert answer.status == 200, answer.body
            costs.append(answer.json["usage"]["credits"])

    def reload_often() -> None:
        for number in range(RELOADS):
            rewrite(service, backend, (MOVED, CATALOGUE)[number % 2])
            reload(service)
        stop.set()

    at_once([ask, ask, ask, ask, reload_often])
    assert set(costs) == {1, 7}
    assert {received.path for received in backend.received} == {"/v1/chat/completions", "/v1/moved/chat/completions"}
    assert look(service, "SELECT sum(credits), count(*) FROM requests WHERE state = 'charged'") == [
        (sum(costs), len(costs))
    ]


def test_a_request_on_its_way_ends_as_it_began(service: RunningService, backend: ScriptedBackend) -> None:
    """Its model is sold no longer: it gets its reply, at the price of its admission. Later ones are 404."""
    customer = service.customer()
    without = DEARER[: DEARER.index('[models."test/two"]')] + DEARER[DEARER.index('[models."test/free"]') :]
    without = without.replace('"test/one", "test/two"', '"test/one"')
    with held(backend, partial(service.chat, customer, model="test/two")) as (asked,):
        rewrite(service, backend, without)
        reload(service)
        assert_domain_error(service.chat(customer, model="test/two"), 404, "model_not_found")
    assert_paid(asked.result(), 2, "plan")


def test_requests_in_line_are_served_by_the_backends_that_they_wait_for(
    service: RunningService, backend: ScriptedBackend
) -> None:
    """The model gets others meanwhile, and their requests do not wait behind them."""
    customer = service.customer()
    rewrite(service, backend, CATALOGUE + NARROW)
    reload(service)
    with held(backend, *[partial(service.chat, customer, model="narrow")] * MANY, admitted=1) as asked:
        wait_until(lambda: look(service, "SELECT count(*) FROM requests WHERE state = 'held'") == [(MANY,)])
        rewrite(service, backend, CATALOGUE + NARROW.replace("/old", "/new"))
        reload(service)
        backend.hold("Hello")
        assert service.chat(customer, "Are you new?", model="narrow").status == 200
        assert backend.received[-1].path == "/v1/new/chat/completions"
    assert {future.result().status for future in asked} == {200}
    assert [received.path for received in backend.received].count("/v1/old/chat/completions") == MANY


def test_a_bad_configuration_is_refused_and_the_old_one_stays(
    service: RunningService, backend: ScriptedBackend
) -> None:
    """The log has file, line and reason; the next good one is taken."""
    customer = service.customer()
    rewrite(service, backend, DEARER.replace("requests_per_minute = 3\n", 'requests_per_minute = "three"\n'))
    line = service.config.read_text().split("\n").index('requests_per_minute = "three"') + 1
    refused = reload(service, outcome="configuration_refused")
    assert refused["problem"] == (
        f'{service.config}:{line}: plans.narrow.requests_per_minute: expected an integer of at least 1, got "three"'
    )
    assert prices(service, customer) == {1}
    away = service.config.rename(service.config.with_suffix(".away"))
    assert "cannot be read" in reload(service, outcome="configuration_refused")["problem"]
    assert prices(service, customer) == {1}
    away.rename(service.config)
    rewrite(service, backend, DEARER)
    reload(service)
    assert prices(service, customer) == {7}


def test_a_key_and_an_authority_that_are_replaced_in_their_files_are_in_force_in_every_worker(
    service: RunningService, backend: ScriptedBackend
) -> None:
    """The configuration names the same files as before; a server whose authority is not the file's gets no request."""
    customer, authority = service.customer(), trustme.CA()

    def ask() -> set[int]:
        return {answer.status for answer in at_once([partial(service.chat, customer, model="secretive")] * MANY)}

    (service.folder / "key").write_text("sk-first\n")
    ca_file(service.folder, trustme.CA())
    with serving(authority, "127.0.0.1") as server:
        rewrite(service, backend, CATALOGUE + SECRETIVE.replace("URL", server.url))
        reload(service)
        assert (ask(), server.keys) == ({502}, set())
        ca_file(service.folder, authority)
        reload(service)
        assert (ask(), server.keys) == ({200}, {"Bearer sk-first"})
        (service.folder / "key").write_text("sk-second\n")
        reload(service)
        server.keys.clear()
        assert (ask(), server.keys) == ({200}, {"Bearer sk-second"})


def test_a_worker_that_starts_later_has_the_newest(service: RunningService, backend: ScriptedBackend) -> None:
    """One that replaces another that has died."""
    customer = service.customer()
    rewrite(service, backend, DEARER)
    reload(service)
    first, _ = workers(service)
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: has_ended(first) and len(workers(service)) == WORKERS)
    rewrite(service, backend, DEARER)
    assert reload(service)["workers"] == ALL
    assert prices(service, customer) == {7}


def test_what_needs_a_restart_is_said(service: RunningService, backend: ScriptedBackend) -> None:
    """[server] and [database] stay as they are; the rest of the change is taken all the same."""
    customer = service.customer()
    text = service.config.read_text().replace(f"workers = {WORKERS}", "workers = 5")
    service.config.write_text(text)
    rewrite(service, backend, DEARER)
    reload(service)
    assert len(events(service, "restart_needed")) == 1
    assert len(workers(service)) == WORKERS
    assert prices(service, customer) == {7}


def test_what_waits_for_a_restart_is_what_differs_from_the_start(service: RunningService) -> None:
    """By the names of its settings, at each reload, for as long as it does; not what differs from the last reload."""
    text = service.config.read_text()
    moved = re.sub(r"(?m)^port = .*$", "port = 1", text)
    narrowed = moved.replace("port = 1", "port = 1\nmax_in_flight = 7")
    other = f'[operators]\nsecond_factor = "required"\n[logs]\nlevel = "error"\n{text}'
    one = "server.port is not as at the start, and waits for a restart"
    two = "server.port and server.max_in_flight are not as at the start, and wait for a restart"
    three = "operators.second_factor and logs.level are not as at the start, and wait for a restart"
    told = list[str]()
    for changed, reason in (
        (moved, one),
        (moved, one),
        (narrowed, two),
        (moved, one),
        (text, None),
        (text, None),
        (other, three),
    ):
        service.config.write_text(changed)
        ran = service.run("reload")
        notes = [line for line in ran.stderr.splitlines() if "restart" in line]
        assert (ran.returncode, notes) == (0, [] if reason is None else [f"tarazu: {reason}"])
        told += () if reason is None else (reason,)
        assert [event["reason"] for event in events(service, "restart_needed")] == told


def test_a_reload_that_leaves_accounts_without_their_plan_says_so(
    service: RunningService, backend: ScriptedBackend
) -> None:
    """The command and the log, with what to do; it is in force all the same."""
    customer = service.customer("large")
    rewrite(service, backend, CATALOGUE.replace("[plans.large]", "[plans.larger]"))
    ran = service.run("reload")
    assert ran.returncode == 0, ran.stderr
    assert "1 account is on the plan large, which is not in the configuration" in ran.stderr
    assert any("plan large" in event["advice"] for event in events(service, "configuration_advice"))
    assert_domain_error(service.chat(customer), 402, "upgrade_required")


@pytest.mark.parametrize(
    ("workers", "models", "told"),
    [(1, 1, "1 model, in force in 1 worker"), (2, 1_000, "1,000 models, in force in 2 workers")],
)
def test_what_is_in_force_is_counted_as_people_do(workers: int, models: int, told: str) -> None:
    """One of a thing is no more than that."""
    assert Reloaded(workers=workers, models=models).done == told


def test_a_local_model_is_loaded_before_it_is_sold(service: RunningService, backend: ScriptedBackend) -> None:
    """The embedded model, named for the first time by a reload, answers the first request."""
    customer = service.customer()
    rewrite(service, backend, CATALOGUE + LOCAL)
    reload(service)
    answer = service.chat(customer, "What is the capital of France?", model="embedded")
    assert answer.status == 200, answer.body
    assert answer.text
