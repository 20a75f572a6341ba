"""A local model that fails, behind the whole service: 502 and the credits back, or served late and paid for once.

It is the real embedded model in its real process. What a try comes to in all other ways is in
tests/backends/test_local_backend.py. The books have no part in it, so they are in SQLite alone.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tarazu.backends.http_client import NO_ANSWER
from tests.support.answers import assert_paid, credits_left, look
from tests.support.at_once import wait_until
from tests.support.envelopes import assert_domain_error
from tests.support.processes import local_models
from tests.support.rows import rows
from tests.support.service import Answer, Customer, RunningService, checked
from tests.support.stores import Store

PROMPT = "prompt-canary-9c2e"
BEYOND_THE_CONTEXT = "語" * 24_000
"""No more characters than a request may have, and more tokens than the model can read."""
CATALOGUE = """
[plans.three]
monthly_credits = 3
requests_per_minute = 100
""" + "".join(
    f"""
[models.{name}]
credits = 1
timeout_s = {timeout_s}
max_output_tokens = 4
[[models.{name}.backends]]
kind = "local"
"""
    for name, timeout_s in (("hasty", 1), ("patient", 60))
)


@pytest.fixture(scope="module")
def service(sqlite_store: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service that sells the embedded model, with little time for a reply and with much."""
    folder = tmp_path_factory.mktemp("service")
    database_url = sqlite_store.new_books(folder)
    with checked(RunningService(folder, "", catalogue=CATALOGUE, database_url=database_url)) as running:
        assert running.chat(running.customer("three"), PROMPT, model="patient").status == 200  # so it is loaded
        yield running


def assert_free(service: RunningService, customer: Customer, answer: Answer) -> None:
    """Assert a 502 after one try whose credit is back."""
    assert assert_domain_error(answer, 502, "upstream_error") == {}
    assert credits_left(service, customer) == (3, 0)
    assert requests(service, customer) == [("released", 1, 1)]


def requests(service: RunningService, customer: Customer) -> list[tuple[Any, ...]]:
    """Read state, credits and tries of the customer's requests."""
    return look(service, "SELECT state, credits, tries FROM requests WHERE account_id = :id", id=customer.account_id)


def faults(service: RunningService, log_before: int) -> list[tuple[str, str]]:
    """Read what the log says of failed tries."""
    return [(event["fault"], event["detail"]) for event in service.logged("backend_failed", since=log_before)]


@contextmanager
def stopped(process_id: int) -> Iterator[None]:
    """Let a process hang while the block runs."""
    os.kill(process_id, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process_id, signal.SIGCONT)


@rows("decisions.order_of_checks.17", "spec.codes.upstream_error", "spec.codes.rule_2")
def test_a_process_that_hangs_is_a_502_that_costs_nothing(service: RunningService) -> None:
    """When the model's time is over; nothing of the prompt is in the log, and once it goes on, callers are served."""
    customer, log_before = service.customer("three"), len(service.log.read_text())
    [process_id] = local_models(service)
    with stopped(process_id):
        answer = service.chat(customer, PROMPT, model="hasty")
    assert_free(service, customer, answer)
    assert faults(service, log_before) == [("timeout", NO_ANSWER)]
    assert PROMPT not in service.log.read_text()[log_before:]
    assert_paid(service.chat(customer, PROMPT, model="patient"), 1, "plan")


@rows("decisions.order_of_checks.17", "spec.codes.upstream_error", "spec.codes.rule_2")
def test_a_prompt_beyond_the_context_is_a_502_that_costs_nothing(service: RunningService) -> None:
    """The model refuses it, once."""
    customer, log_before = service.customer("three"), len(service.log.read_text())
    assert_free(service, customer, service.chat(customer, BEYOND_THE_CONTEXT, model="patient"))
    assert faults(service, log_before) == [("request_refused", "400 exceed_context_size_error")]


def test_a_process_that_is_killed_costs_no_reply(service: RunningService) -> None:
    """The request waits for the next one, and is one try and one charge."""
    customer = service.customer("three")
    [before] = local_models(service)
    os.kill(before, signal.SIGKILL)
    wait_until(lambda: before not in local_models(service))
    assert_paid(service.chat(customer, PROMPT, model="patient"), 1, "plan")
    assert credits_left(service, customer) == (2, 0)
    assert requests(service, customer) == [("charged", 1, 1)]
