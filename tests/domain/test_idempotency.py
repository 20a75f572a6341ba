"""Idempotency keys in the table of checks: after what is wrong with the body, before what credits and models decide."""

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.domain import idempotency
from tarazu.domain.accounts import Intake, Window
from tarazu.domain.admission import SETTLING_S, Asked, Caller, Decision, admit
from tarazu.domain.errors import Error, Refusal
from tarazu.domain.idempotency import Earlier, Idempotency, Replay, idempotency_of
from tests.support.values import (
    MINUTE_MS,
    NOON_MS,
    held,
    make_account,
    make_asked,
    make_catalogue,
    make_key,
    make_plan,
    refused,
)

BODY = b'{"prompt": "Hello"}'
SENT = idempotency_of("a key", BODY)
RUNNING = Earlier(request_id="req_first", fingerprint=SENT.fingerprint, reply=None)
ANSWERED = Earlier(request_id="req_first", fingerprint=SENT.fingerprint, reply=b"Hello.")
OF_ANOTHER_BODY = Earlier(request_id="req_first", fingerprint=sha256(b"{}").digest(), reply=b"Hello.")
REUSED = Refusal(error=Error.IDEMPOTENCY_MISMATCH)
DROPPED = Earlier(request_id="req_first", fingerprint=SENT.fingerprint, reply=None, is_dropped=True)
STILL_RUNNING = Refusal(error=Error.IDEMPOTENCY_CONFLICT, retry_after_s=1)


def decide(
    earlier: Earlier | None,
    *,
    asked: Asked | None = None,
    caller: Caller | None = None,
    intake: Intake = Intake(),  # noqa: B008 - it is frozen
) -> Decision:
    """Ask with a key by a good caller, but for what the test names."""
    return admit(
        asked or make_asked(idempotency=SENT),
        caller or Caller(make_key(), make_account()),
        intake,
        make_catalogue(),
        NOON_MS,
        earlier,
    )


def test_a_fingerprint_is_of_all_bytes_of_the_body() -> None:
    """The key itself is no part of it."""
    assert Idempotency("a key", sha256(BODY).digest()) == SENT
    assert idempotency_of("another key", BODY).fingerprint == SENT.fingerprint
    assert idempotency_of("a key", BODY + b" ").fingerprint != SENT.fingerprint


def test_the_first_request_with_a_key_is_held_under_it() -> None:
    """A request without a key is held without one."""
    assert held(decide(None)).idempotency_key == "a key"
    assert held(decide(None, asked=make_asked())).idempotency_key is None


@pytest.mark.parametrize(
    ("earlier", "outcome"),
    [
        (RUNNING, STILL_RUNNING),
        (ANSWERED, Replay(b"Hello.")),
        (OF_ANOTHER_BODY, REUSED),
        (DROPPED, Refusal(error=Error.IDEMPOTENCY_MISMATCH, message=idempotency.DROPPED)),
    ],
    ids=["running", "answered", "another body", "dropped"],
)
@pytest.mark.parametrize("balance", [0, 5])
def test_a_taken_key_decides_before_credits_do(earlier: Earlier, outcome: object, balance: int) -> None:
    """With or without credits, plan and model: a place is used, and no credits are moved."""
    account = make_account(plan=None, balance=balance)
    asked = make_asked(model="gone", idempotency=SENT)
    decision = decide(earlier, asked=asked, caller=Caller(make_key(), account))
    assert decision.outcome == outcome
    assert decision.rate_limit is not None
    assert decision.caller is not None
    assert decision.caller.account == make_account(plan=None, balance=balance, window=Window(NOON_MS // MINUTE_MS, 1))


@given(st.integers(1, 600_000), st.integers(0, 700_000))
def test_who_asks_again_is_told_when_it_may_help(timeout_ms: int, age_ms: int) -> None:
    """Soon, while the model may still answer. Later its process has died: in time for the sweep, and not before."""
    deadline_ms = NOON_MS - age_ms + timeout_ms + SETTLING_S * 1_000
    running = Earlier(request_id="req_first", fingerprint=SENT.fingerprint, reply=None, deadline_ms=deadline_ms)
    retry_after_s = refused(decide(running)).retry_after_s
    assert retry_after_s is not None
    if age_ms < timeout_ms:
        assert retry_after_s == 1
    else:
        assert retry_after_s == max(1, -(-(deadline_ms - NOON_MS) // 1_000))


def test_another_body_is_said_before_that_the_first_still_runs() -> None:
    """To wait would not help."""
    running = Earlier(request_id="req_first", fingerprint=b"another", reply=None)
    assert decide(running).outcome == REUSED


def test_what_comes_before_the_key_is_answered_first() -> None:
    """Rows 4 to 13: a replay is for who may call, and for a body that may be sent."""
    full = make_catalogue(plans=[make_plan(requests_per_minute=1)])
    taken = make_account(window=Window(NOON_MS // MINUTE_MS, 1))
    no_input = make_asked(refusal=Refusal(error=Error.MESSAGES_REQUIRED), idempotency=SENT)
    revoked = Caller(make_key(revoked_at_ms=NOON_MS), make_account())
    windows = admit(make_asked(idempotency=SENT), Caller(make_key(), taken), Intake(), full, NOON_MS, ANSWERED)
    assert refused(decide(ANSWERED, caller=revoked)).error is Error.INVALID_API_KEY
    assert refused(decide(ANSWERED, intake=Intake(stopped=True))).error is Error.SYSTEM_STOPPED
    assert refused(windows).error is Error.RATE_LIMIT_EXCEEDED
    assert refused(decide(ANSWERED, asked=no_input)).error is Error.MESSAGES_REQUIRED
