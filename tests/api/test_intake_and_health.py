"""Intake that the operator stops, books that cannot be reached: nothing is served unpaid, and nobody is turned away."""

from functools import partial

import pytest

from tests.support.answers import assert_refused, credits_left, look
from tests.support.at_once import at_once, held, wait_until
from tests.support.backend import Behaviour, ScriptedBackend, replies, resets
from tests.support.books import sqlite_only
from tests.support.envelopes import assert_domain_error
from tests.support.processes import books_being_written, books_out_of_reach, no_room_on_disk, pass_deadlines, workers
from tests.support.rows import rows
from tests.support.service import MODELS, USAGE, Customer, RunningService
from tests.support.windows import NONE_TAKEN, places

ASKERS = 5

pytestmark = pytest.mark.both_stores


def _command(service: RunningService, *arguments: str) -> str:
    ran = service.run("intake", *arguments)
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stderr
    return ran.stdout


@rows("decisions.order_of_checks.6", "spec.codes.system_stopped", "decisions.reply.5")
def test_a_stop_of_intake_holds_from_the_next_request_until_it_is_resumed(
    service: RunningService, backend: ScriptedBackend
) -> None:
    """`tarazu intake stop --retry-after 7`: 503 with that Retry-After, no place, no credit; after `resume`, served."""
    customer = service.customer("three")
    try:
        assert "stopped" in _command(service, "stop", "--retry-after", "7")
        answer = service.chat(customer)
        assert "stopped" in _command(service, "status")
    finally:
        assert "running" in _command(service, "resume")
    assert_refused(answer, 503, "system_stopped", counted=False)
    assert answer.headers["retry-after"] == "7"
    assert places(service, customer) == NONE_TAKEN
    assert backend.received == []
    assert credits_left(service, customer) == (3, 0)

    assert service.chat(customer).status == 200
    assert "running" in _command(service, "status")


@rows("decisions.order_of_checks.6", "spec.codes.system_stopped")
def test_while_intake_is_stopped_only_completions_are_refused(service: RunningService) -> None:
    """Models, usage and health are shown as ever."""
    customer = service.customer()
    service.provisioning.stop_intake(retry_after_s=7)
    try:
        assert service.get(MODELS, customer).status == 200
        assert service.get(MODELS + "/test/one", customer).status == 200
        assert service.get(USAGE, customer).status == 200
        assert service.get("/health").status == 200
        assert service.chat(customer).status == 503
    finally:
        service.provisioning.resume_intake()


@rows("decisions.order_of_checks.6", "spec.codes.system_stopped")
def test_what_is_running_when_intake_stops_is_finished_and_paid(
    service: RunningService, backend: ScriptedBackend
) -> None:
    """A stop refuses new requests; it takes no reply from those that were admitted."""
    customer = service.customer("three")
    try:
        with held(backend, partial(service.chat, customer)) as [asked]:
            service.provisioning.stop_intake(retry_after_s=7)
            assert service.chat(customer).status == 503
        assert asked.result().status == 200
    finally:
        service.provisioning.resume_intake()
    assert credits_left(service, customer) == (2, 0)


@rows("decisions.added_by_this_project.7")
def test_health_needs_no_key_and_tells_nothing(service: RunningService) -> None:
    """GET /health is 200 with nothing but that it is well."""
    answer = service.get("/health")
    assert (answer.status, answer.json) == (200, {"status": "ok"})
    assert answer.headers["content-type"] == "application/json"
    assert "x-request-id" in answer.headers


@rows("decisions.added_by_this_project.18")
def test_life_and_readiness_need_no_key_and_tell_nothing(service: RunningService) -> None:
    """While all is well: that the process turns, and that nothing keeps it from serving."""
    assert (service.get("/livez").status, service.get("/livez").json) == (200, {"status": "ok"})
    assert (service.get("/readyz").status, service.get("/readyz").json) == (200, {"status": "ok", "problems": []})


@rows("decisions.added_by_this_project.18")
def test_it_is_not_ready_while_the_books_take_no_write(service: RunningService) -> None:
    """The process lives on meanwhile, and it is ready again as soon as they do."""
    with books_out_of_reach(service):
        wait_until(lambda: service.get("/readyz").status == 503)  # what was found a moment before is told for a while
        answers = at_once([partial(service.get, "/readyz")] * ASKERS)
        assert {answer.status for answer in answers} == {503}
        [problem] = answers[0].json["problems"]
        assert problem.startswith("The books ")
        assert service.get("/livez").status == 200
    wait_until(lambda: service.get("/readyz").status == 200)


def _revoked(service: RunningService, customer: Customer) -> Customer:
    other = service.another_key(customer)
    service.provisioning.revoke_key(other.key_id)
    return other


@rows("decisions.reply.5", "spec.codes.system_stopped")
def test_while_the_books_are_out_of_reach_everything_is_503(service: RunningService, backend: ScriptedBackend) -> None:
    """Nobody is told that a key is bad, nobody is served unchecked; once they can be reached, all is as before."""
    customer = service.customer("three")
    calls = [
        partial(service.chat, customer),
        partial(service.chat, _revoked(service, customer)),
        partial(service.get, USAGE, customer),
        partial(service.get, MODELS, customer),
        partial(service.get, "/health"),
    ]
    with books_out_of_reach(service):
        answers = at_once(calls)
    for answer in answers:
        assert_refused(answer, 503, "system_stopped", counted=False)
    assert backend.received == []
    assert [call().status for call in calls] == [200, 401, 200, 200, 200]
    assert credits_left(service, customer) == (2, 0)


@rows("decisions.reply.5", "spec.codes.system_stopped")
def test_while_nobody_may_write_the_books_nothing_is_served(service: RunningService, backend: ScriptedBackend) -> None:
    """A writer that keeps the books for longer than the service waits: 503, and a reply as soon as it has let go."""
    customer = service.customer("three")
    with books_being_written(service):
        answer = service.chat(customer)
    assert_refused(answer, 503, "system_stopped", counted=False)
    assert backend.received == []
    assert service.chat(customer).status == 200
    assert credits_left(service, customer) == (2, 0)


@rows("decisions.reply.4", "spec.codes.system_stopped")
def test_a_reply_that_cannot_be_charged_is_not_sent(service: RunningService, backend: ScriptedBackend) -> None:
    """The books are kept from the service between admission and charge: 503 instead of a free reply, credits back."""
    customer = service.customer("three")
    with held(backend, partial(service.chat, customer)) as [asked], books_being_written(service):
        backend.let_go()
        answer = asked.result()
    assert_domain_error(answer, 503, "system_stopped")
    assert b"Hello there." not in answer.body
    wait_until(lambda: look(service, "SELECT 1 FROM requests WHERE state = 'held'") == [])
    assert credits_left(service, customer) == (3, 0)
    assert service.chat(customer).status == 200


@sqlite_only
@rows("decisions.reply.5", "spec.codes.system_stopped")
def test_while_the_disk_takes_nothing_nothing_is_served(service: RunningService, backend: ScriptedBackend) -> None:
    """Neither the books nor the log can be written: 503 for each, and a reply as soon as there is room again."""
    customer = service.customer("three")
    [worker] = workers(service)
    with no_room_on_disk(worker):
        for _ in range(3):
            assert_refused(service.chat(customer), 503, "system_stopped", counted=False)
        wait_until(lambda: service.get("/readyz").status == 503)
        assert service.get("/health").status == 200
    wait_until(lambda: service.get("/readyz").status == 200)
    assert backend.received == []
    assert service.chat(customer).status == 200
    assert credits_left(service, customer) == (2, 0)
    assert workers(service) == [worker]


@sqlite_only
@rows("decisions.reply.4", "spec.codes.rule_2")
@pytest.mark.parametrize(("behaviour", "status"), [(replies(), 503), (resets, 502)], ids=["reply", "failed try"])
def test_what_the_books_could_not_take_is_swept_back_later(
    service: RunningService, backend: ScriptedBackend, behaviour: Behaviour, status: int
) -> None:
    """The disk is full when a request ends: it is not served, and after its deadline its credits are back."""
    customer = service.customer("three")
    [worker] = workers(service)
    backend.behaviour = behaviour
    with held(backend, partial(service.chat, customer)) as [asked], no_room_on_disk(worker):
        backend.let_go()
        assert asked.result().status == status
        assert service.get(USAGE, customer).status in {200, 503}  # waits in the same queue as the release
    assert _state(service, customer) == "held"
    assert credits_left(service, customer) == (2, 0)

    pass_deadlines(service)
    wait_until(lambda: _state(service, customer) == "swept")
    assert credits_left(service, customer) == (3, 0)
    backend.reset()
    assert service.chat(customer).status == 200


def _state(service: RunningService, customer: Customer) -> str:
    [(state,)] = look(service, "SELECT state FROM requests WHERE account_id = :id", id=customer.account_id)
    return str(state)
