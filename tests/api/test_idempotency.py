"""Idempotency keys: a retry with the same key gets the first reply again, and is charged once.

Retries that race with the first are in test_races.
"""

import json
from functools import partial
from pathlib import Path

import pytest

from tests.support.answers import assert_paid, credits_left, is_replay, look
from tests.support.at_once import held, wait_until
from tests.support.backend import ScriptedBackend, answers, replies, stalls
from tests.support.envelopes import (
    RATE_LIMIT_HEADERS,
    assert_domain_error,
    assert_own_error,
    rate_limit_headers,
)
from tests.support.rows import rows
from tests.support.service import CATALOGUE, CHAT, Answer, Customer, RunningService
from tests.support.set_clock import SetClock, service_by
from tests.support.stores import Store
from tests.support.windows import places
from tests.support.wire import Wire, chat_head
from tests.support.written import written

BODY = json.dumps({"model": "test/one", "prompt": "Hello"}).encode()
OTHER_BODY = json.dumps({"model": "test/one", "prompt": "Hello!"}).encode()
KEY = "2c5ea4c0-4067-11e9-8bad-9b1deb4d3b7d"
DAY_S = 24 * 60 * 60
TIMEOUT_S = 5
"""For so long test/one may be asked."""
HOLD_S = TIMEOUT_S + 30
"""How long after its admission a hold of test/one may be swept."""

pytestmark = [pytest.mark.both_stores, pytest.mark.usefixtures("noon")]


@pytest.fixture(scope="module")
def catalogue() -> str:
    """What is usually sold, and little room for replies."""
    return CATALOGUE + "\n[idempotency]\nper_account_mib = 1\n"


@pytest.fixture(scope="module")
def service(service_by_clock: RunningService) -> RunningService:
    """A running service that tells the time by the test's clock; at the end its books must balance."""
    return service_by_clock


def ask(service: RunningService, customer: Customer, body: bytes = BODY, key: str = KEY) -> Answer:
    """Ask for a completion with an idempotency key."""
    return service.post(customer, body, Idempotency_Key=key)


def kept_keys(service: RunningService, customer: Customer) -> int:
    """Count the keys that the books keep for an account."""
    query = "SELECT count(*) FROM idempotency_keys WHERE account_id = :id"
    ((number,),) = look(service, query, id=customer.account_id)
    assert isinstance(number, int)
    return number


@rows("decisions.idempotency.1")
def test_the_same_key_and_body_get_the_first_reply_again(
    service: RunningService, backend: ScriptedBackend, clock: SetClock
) -> None:
    """Byte for byte, though the model would answer otherwise now; charged once, and the model asked once."""
    customer = service.customer("three")
    first = ask(service, customer)
    assert_paid(first, 1, "plan")
    assert not is_replay(first)
    backend.behaviour = replies("Another answer.")
    clock.advance(61)
    again = [ask(service, customer) for _ in range(5)]
    assert all(map(is_replay, again))
    assert {answer.body for answer in again} == {first.body}
    assert credits_left(service, customer) == (2, 0)
    assert len(backend.received) == 1
    assert look(service, "SELECT requests FROM daily_usage WHERE account_id = :id", id=customer.account_id) == [(1,)]


@rows("decisions.idempotency.1", "decisions.idempotency.2")
def test_a_replay_differs_in_headers_alone(service: RunningService) -> None:
    """It has a request id of its own and takes a place in the windows like any other."""
    customer = service.customer(limit_per_minute=2)
    first, again = ask(service, customer), ask(service, customer)
    assert set(again.headers) - set(first.headers) == {"idempotent-replayed"}
    assert set(first.headers) <= set(again.headers)
    assert first.headers["x-request-id"] != again.headers["x-request-id"]
    assert [each.headers["x-ratelimit-remaining"] for each in (first, again)] == ["1", "0"]
    assert_domain_error(ask(service, customer), 429, "rate_limit_exceeded")


@rows("decisions.idempotency.1", "decisions.idempotency.2")
def test_the_same_key_with_another_body_is_refused(service: RunningService, backend: ScriptedBackend) -> None:
    """422, while the first runs and after it; the key stays the first body's."""
    customer = service.customer("three")
    with held(backend, partial(ask, service, customer)) as asked:
        assert_own_error(ask(service, customer, OTHER_BODY), 422)
    first = asked[0].result()
    refused = ask(service, customer, OTHER_BODY)
    assert_own_error(refused, 422)
    assert rate_limit_headers(refused) == RATE_LIMIT_HEADERS
    assert_own_error(ask(service, customer, BODY + b" "), 422)
    assert ask(service, customer).body == first.body
    assert credits_left(service, customer) == (2, 0)
    assert len(backend.received) == 1


@rows("decisions.idempotency.1")
def test_another_key_is_another_request(service: RunningService) -> None:
    """Keys are told apart exactly, case and inner spaces too."""
    customer = service.customer("three")
    keys = ("key a", "key A", "key  a")
    assert not any(is_replay(ask(service, customer, key=key)) for key in keys)
    assert credits_left(service, customer) == (0, 0)
    assert all(is_replay(ask(service, customer, key=key)) for key in keys)


@rows("decisions.idempotency.1")
def test_a_failed_first_try_frees_the_key(service: RunningService, backend: ScriptedBackend) -> None:
    """Also for another body: what failed has left nothing."""
    customer = service.customer("three")
    backend.behaviour = answers(b"no", status=500)
    for _ in range(3):
        assert_domain_error(ask(service, customer), 502, "upstream_error")
    assert credits_left(service, customer) == (3, 0)
    assert kept_keys(service, customer) == 0
    backend.behaviour = replies()
    assert not is_replay(ask(service, customer, OTHER_BODY))
    assert credits_left(service, customer) == (2, 0)


@rows("decisions.idempotency.1")
def test_a_refused_request_takes_no_key(service: RunningService) -> None:
    """Neither one that a check on the body refuses nor one that a later check does."""
    customer = service.customer(None)
    assert_domain_error(ask(service, customer), 402, "upgrade_required")
    assert_domain_error(ask(service, customer, b"{}"), 422, "messages_required")
    assert_own_error(ask(service, customer, b"{"), 400)
    assert kept_keys(service, customer) == 0
    service.provisioning.add_credit(customer.account_id, 1, reference=f"late {customer.account_id}")
    assert_paid(ask(service, customer), 1, "api_balance")


@rows("decisions.idempotency.1")
def test_a_client_that_leaves_frees_its_key(service: RunningService, backend: ScriptedBackend) -> None:
    """The retry is served as the first request would have been."""
    customer = service.customer("three")
    backend.behaviour = stalls
    with Wire(service.port) as wire:
        wire.send(chat_head(customer, f"Content-Length: {len(BODY)}", f"Idempotency-Key: {KEY}") + BODY)
        backend.wait_for_requests(1)
        assert kept_keys(service, customer) == 1
    backend.wait_for_leaving()
    wait_until(lambda: kept_keys(service, customer) == 0)
    backend.behaviour = replies()
    assert not is_replay(ask(service, customer))
    assert credits_left(service, customer) == (2, 0)


@rows("decisions.idempotency.3")
def test_beyond_an_accounts_room_the_oldest_reply_is_dropped_and_not_charged_again(
    service: RunningService, backend: ScriptedBackend
) -> None:
    """Its key says so for the rest of its 24 hours; the newer replies are replayed, and other accounts' too."""
    customer, other = service.customer(), service.customer()
    backend.behaviour = replies("x" * 400_000)
    asked = [ask(service, customer, key=f"key {number}") for number in range(3)]
    theirs = ask(service, other, key="key 0")
    assert {answer.status for answer in (*asked, theirs)} == {200}
    left = credits_left(service, customer)
    for _ in range(2):
        gone = ask(service, customer, key="key 0")
        assert_own_error(gone, 422)
        assert "charged once" in gone.body.decode()
    assert_own_error(ask(service, customer, OTHER_BODY, key="key 0"), 422)
    for answer, again in zip(
        asked[1:], [ask(service, customer, key=f"key {number}") for number in (1, 2)], strict=True
    ):
        assert (is_replay(again), again.body) == (True, answer.body)
    assert is_replay(ask(service, other, key="key 0"))
    assert credits_left(service, customer) == left
    assert len(backend.received) == 4


@rows("decisions.idempotency.1", "decisions.idempotency.5")
def test_the_scope_is_the_account(service: RunningService, backend: ScriptedBackend) -> None:
    """All keys of an account share the idempotency key; another account's is its own, whatever the body."""
    customer, stranger = service.customer("three"), service.customer("three")
    first = ask(service, customer)
    again = ask(service, service.another_key(customer))
    assert (is_replay(again), again.body) == (True, first.body)
    assert_own_error(ask(service, service.another_key(customer), OTHER_BODY), 422)
    backend.behaviour = replies("For you alone.")
    theirs = ask(service, stranger, OTHER_BODY)
    assert (is_replay(theirs), theirs.text) == (False, "For you alone.")
    assert (credits_left(service, customer), credits_left(service, stranger)) == ((2, 0), (2, 0))


@rows("decisions.idempotency.1", "decisions.idempotency.2")
def test_what_is_paid_for_is_replayed_without_credits(service: RunningService) -> None:
    """Also to a key that may not use the model, on an account that has nothing left."""
    customer = service.customer(None, balance=1)
    first = ask(service, customer)
    assert_domain_error(service.post(customer, BODY), 402, "upgrade_required")
    narrow = service.another_key(customer, models=["test/two"])
    again = [ask(service, customer), ask(service, narrow)]
    assert all(map(is_replay, again))
    assert {answer.body for answer in again} == {first.body}


@rows("decisions.idempotency.1", "decisions.idempotency.2")
@pytest.mark.parametrize(
    "values",
    [[""], ["  "], ["x" * 256], ["caf\xe9"], ["a\tb"], ["a", "a"], ["a", ""]],
    ids=["empty", "blank", "too long", "not ASCII", "a tab inside", "twice", "twice, once empty"],
)
def test_another_form_of_key_is_refused(service: RunningService, backend: ScriptedBackend, values: list[str]) -> None:
    """400; no credits, and a place in the windows."""
    customer = service.customer("three")
    refused = _ask_with(service, customer, BODY, values)
    assert "Idempotency-Key" in assert_own_error(refused, 400)
    assert rate_limit_headers(refused) == RATE_LIMIT_HEADERS
    assert places(service, customer).account == 1
    assert credits_left(service, customer) == (3, 0)
    assert backend.received == []


@rows("decisions.idempotency.1")
@pytest.mark.parametrize("key", ["x", "~" * 255, '"; DROP TABLE x; -- \\ %00', "a b"])
def test_printable_ascii_is_a_key(service: RunningService, key: str) -> None:
    """From 1 to 255 characters."""
    customer = service.customer("three")
    assert [is_replay(ask(service, customer, key=key)) for _ in range(2)] == [False, True]


@rows("decisions.idempotency.1", "decisions.idempotency.2")
def test_a_wrong_key_is_answered_with_check_11(service: RunningService) -> None:
    """After what is wrong up to `stream`, before the messages are looked at."""
    customer = service.customer()
    wrong = [""]
    assert "Idempotency-Key" not in assert_own_error(_ask_with(service, customer, b"{", wrong), 400)
    streaming = _ask_with(service, customer, b'{"prompt": "Hello", "stream": true}', wrong)
    assert_domain_error(streaming, 400, "streaming_not_supported")
    assert "Idempotency-Key" in assert_own_error(_ask_with(service, customer, b"{}", wrong), 400)
    blocked = service.customer("three", limit_per_minute=1)
    service.chat(blocked)
    assert_domain_error(_ask_with(service, blocked, BODY, wrong), 429, "rate_limit_exceeded")


@rows("decisions.idempotency.1")
def test_a_key_is_kept_for_24_hours(service: RunningService, clock: SetClock) -> None:
    """Until the last second; then the same key is a new request, charged again, with a reply of its own."""
    customer = service.customer("three")
    first = ask(service, customer)
    clock.advance(DAY_S - 1)
    assert is_replay(ask(service, customer))
    clock.advance(1)
    second = ask(service, customer, OTHER_BODY)
    assert not is_replay(second)
    assert second.json["id"] != first.json["id"]
    assert credits_left(service, customer) == (1, 0)
    again = ask(service, customer, OTHER_BODY)
    assert (is_replay(again), again.body) == (True, second.body)


@rows("decisions.idempotency.1")
def test_replays_survive_a_restart(store: Store, backend: ScriptedBackend, tmp_path: Path, clock: SetClock) -> None:
    """The reply is in the books, as durable as its charge: also when everything is killed."""
    with service_by(clock, tmp_path, backend.url, database_url=store.new_books(tmp_path)) as service:
        customer = service.customer("three")
        first = ask(service, customer)
        service.kill()
        service.start()
        again = ask(service, customer)
        assert (is_replay(again), again.body) == (True, first.body)
        assert credits_left(service, customer) == (2, 0)


@rows("decisions.idempotency.1", "decisions.idempotency.4")
def test_a_kill_in_mid_flight_frees_the_key_with_its_hold(
    store: Store, backend: ScriptedBackend, tmp_path: Path, clock: SetClock
) -> None:
    """Until the sweep the key says that its request runs, and when it will not any more; then the retry is served."""
    with service_by(clock, tmp_path, backend.url, database_url=store.new_books(tmp_path)) as service:
        customer = service.customer("three")
        backend.behaviour = stalls
        with Wire(service.port) as wire:
            wire.send(chat_head(customer, f"Content-Length: {len(BODY)}", f"Idempotency-Key: {KEY}") + BODY)
            backend.wait_for_requests(1)
            service.kill()
        backend.behaviour = replies()
        service.start()
        refused = ask(service, customer)
        assert_own_error(refused, 409)
        assert refused.headers["retry-after"] == "1"
        clock.advance(TIMEOUT_S)
        assert ask(service, customer).headers["retry-after"] == str(HOLD_S - TIMEOUT_S)
        clock.advance(HOLD_S - TIMEOUT_S + 1)
        wait_until(lambda: kept_keys(service, customer) == 0)
        assert not is_replay(ask(service, customer))
        assert credits_left(service, customer) == (2, 0)


@rows("decisions.idempotency.1")
def test_no_reply_is_stored_without_the_header(
    store: Store, backend: ScriptedBackend, tmp_path: Path, clock: SetClock
) -> None:
    """The books hold the text of a reply only for a request with a key, and the prompt never."""
    with service_by(clock, tmp_path, backend.url, database_url=store.new_books(tmp_path)) as service:
        customer = service.customer()
        backend.behaviour = replies("canary of a plain reply")
        assert service.chat(customer, "canary of a prompt").status == 200
        backend.behaviour = replies("canary of a kept reply")
        assert ask(service, customer, b'{"prompt": "canary of a prompt"}').status == 200
        books = written(service)
        found = [canary in books for canary in (b"canary of a plain", b"canary of a prompt", b"canary of a kept reply")]
        assert found == [False, False, True]


def _ask_with(service: RunningService, customer: Customer, body: bytes, values: list[str]) -> Answer:
    headers = [("Content-Type", "application/json"), ("Authorization", f"Bearer {customer.secret}")]
    return service.request("POST", CHAT, body, [*headers, *(("Idempotency-Key", value) for value in values)])
