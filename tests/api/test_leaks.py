"""Credits that leak, in the ways that users of such services report: a hold ends once, and nothing else moves credits.

What races for them is in test_races, killed processes and the turn of the month are in test_serving and test_credits.
"""

import json
from typing import Any

import pytest

from tests.support.answers import assert_paid, assert_refused, credits_left, look, states_of
from tests.support.at_once import wait_until
from tests.support.backend import (
    Behaviour,
    ScriptedBackend,
    answers,
    closes_in_body,
    replies,
    resets,
    resets_in_body,
    stalls,
    stalls_in_body,
)
from tests.support.rows import rows
from tests.support.service import CATALOGUE, RunningService
from tests.support.wire import Wire, chat_head

pytestmark = pytest.mark.both_stores

CATALOGUE_OF_LEAKS = (
    CATALOGUE
    + """
[models."test/slow"]
credits = 2
timeout_s = 60
[[models."test/slow".backends]]
kind = "openai"
url = "BACKEND"
model = "slow"

[models."test/nowhere"]
credits = 2
timeout_s = 5
[[models."test/nowhere".backends]]
kind = "openai"
url = "http://127.0.0.1:9/v1"
model = "nobody listens"

[models."test/second"]
credits = 2
timeout_s = 5
[[models."test/second".backends]]
kind = "openai"
url = "http://127.0.0.1:9/v1"
model = "nobody listens"
[[models."test/second".backends]]
kind = "openai"
url = "BACKEND"
model = "second"
"""
)
BODY = b'{"prompt": "Hello"}'


@pytest.fixture(scope="module")
def catalogue() -> str:
    """Sell models whose backends are patient, absent, or absent at first."""
    return CATALOGUE_OF_LEAKS


@rows("spec.codes.rule_2")
@pytest.mark.parametrize(
    ("model", "behaviour"),
    [
        pytest.param("test/nowhere", replies(), id="connection refused"),
        pytest.param("test/hasty", stalls, id="stalls"),
        pytest.param("test/hasty", stalls_in_body, id="stalls in the body"),
        pytest.param("test/two", closes_in_body, id="closes in the body"),
        pytest.param("test/two", resets, id="resets"),
        pytest.param("test/two", resets_in_body, id="resets in the body"),
    ],
)
def test_a_hold_does_not_leak_when_the_backend_fails(
    service: RunningService, backend: ScriptedBackend, model: str, behaviour: Behaviour
) -> None:
    """Three in a row: each ends in a release, and the fourth, with a model that works, is served."""
    backend.behaviour = behaviour
    customer = service.customer("three")
    for _ in range(3):
        assert_refused(service.chat(customer, model=model), 502, "upstream_error")
    assert credits_left(service, customer) == (3, 0)
    assert states_of(service, customer) == ["released"] * 3
    backend.reset()
    assert_paid(service.chat(customer), 1, "plan")


@rows("spec.codes.upstream_error")
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"null", id="null"),
        pytest.param(b"<html><body>Welcome</body></html>", id="html"),
        pytest.param(b'{"choices": []}', id="no choice"),
        pytest.param(b'{"choices": [{"message": {"role": "assistant", "content": null}}]}', id="null text"),
        pytest.param(b'{"choices": [{"message": {"role": "assistant", "content": " \\n"}}]}', id="blank text"),
    ],
)
def test_an_empty_null_or_html_reply_with_status_200_is_not_charged(
    service: RunningService, backend: ScriptedBackend, body: bytes
) -> None:
    """502, and the credits are back."""
    backend.behaviour = answers(body)
    customer = service.customer("three")
    assert_refused(service.chat(customer), 502, "upstream_error")
    assert credits_left(service, customer) == (3, 0)


@rows("decisions.reply.4")
def test_a_client_that_leaves_pays_nothing_and_its_backend_call_is_cancelled(
    service: RunningService, backend: ScriptedBackend
) -> None:
    """It does not run on for nobody: the backend sees its end long before the model's time-out of a minute."""
    backend.behaviour = stalls
    customer = service.customer("three")
    body = b'{"prompt": "Hello", "model": "test/slow"}'
    with Wire(service.port) as wire:
        wire.send(chat_head(customer, f"Content-Length: {len(body)}") + body)
        backend.wait_for_requests(1)
        assert credits_left(service, customer) == (1, 0)
    backend.wait_for_leaving()
    wait_until(lambda: credits_left(service, customer) == (3, 0))
    assert states_of(service, customer) == ["released"]


@rows("decisions.reply.4")
def test_a_client_that_leaves_after_the_first_byte_has_paid(service: RunningService) -> None:
    """The charge is in the books before the reply is on its way, and stays there."""
    customer = service.customer("three")
    with Wire(service.port) as wire:
        wire.send(chat_head(customer, f"Content-Length: {len(BODY)}") + BODY)
        assert wire.socket.recv(1) == b"H"
        assert states_of(service, customer) == ["charged"]
    assert credits_left(service, customer) == (2, 0)
    assert states_of(service, customer) == ["charged"]


def test_backend_tries_are_one_request_and_one_charge(service: RunningService, backend: ScriptedBackend) -> None:
    """The first backend refuses, the second replies: one row, two tries in it, the price once."""
    customer = service.customer("three")
    assert_paid(service.chat(customer, model="test/second"), 2, "plan")
    assert len(backend.received) == 1
    query = "SELECT state, credits, tries FROM requests WHERE account_id = :id"
    assert look(service, query, id=customer.account_id) == [("charged", 2, 2)]
    assert credits_left(service, customer) == (1, 0)


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": -5, "completion_tokens": -1_000_000},
        {"prompt_tokens": float("nan"), "completion_tokens": float("inf")},
        {"prompt_tokens": "many", "completion_tokens": [1]},
        {"prompt_tokens": 10**30, "completion_tokens": 10**18},
        {"credits": 0, "billing_source": "nobody", "total_tokens": -1},
        [],
        "free of charge",
    ],
    ids=str,
)
def test_hostile_usage_from_a_backend_moves_no_money(
    service: RunningService, backend: ScriptedBackend, usage: Any
) -> None:
    """The price is the price, and the figures shown are sensible ones."""
    backend.behaviour = replies("Hello there.", usage)
    customer = service.customer("three")
    answer = service.chat(customer)
    if answer.status == 200:  # NaN is no JSON: then the whole reply is not valid
        assert_paid(answer, 1, "plan")
        shown = answer.json["usage"]
        assert 0 < shown["prompt_tokens"] < 100
        assert 0 < shown["completion_tokens"] < 100
        assert shown["total_tokens"] == shown["prompt_tokens"] + shown["completion_tokens"]
        assert credits_left(service, customer) == (2, 0)
    else:
        assert "NaN" in json.dumps(usage)
        assert_refused(answer, 502, "upstream_error")
        assert credits_left(service, customer) == (3, 0)
