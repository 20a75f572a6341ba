"""A backend that fails in any way is a 502 that costs nothing and gives nothing away; a valid reply comes through."""

import asyncio
import gzip
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tarazu.backends.pool import AGAIN_TRIES_MAX
from tests.support.answers import credits_left, look
from tests.support.backend import (
    Behaviour,
    Exchange,
    ScriptedBackend,
    answers,
    closes_in_body,
    completion,
    never_ends,
    replies,
    resets,
    resets_in_body,
    stalls,
    stalls_in_body,
)
from tests.support.envelopes import RATE_LIMIT_HEADERS, assert_domain_error, rate_limit_headers
from tests.support.processes import peak_bytes, workers
from tests.support.rows import rows
from tests.support.runs_first import runs_first
from tests.support.service import BACKEND_KEY, CATALOGUE, Answer, Customer, RunningService, checked
from tests.support.stores import Store

CANARY = "canary-4b1d"
"""What a backend says with its refusals. The caller must not see it, nor the log."""
PROMPT = "prompt-canary-9c2e"
REPLY = "Hello there."
ESTIMATES = (5, 3)
"""Tokens of the prompt and of the reply, four characters each."""
HASTY_TIMEOUT_S = 0.3
MEMORY_BYTES_MAX = 64 * 1024 * 1024
"""Far above what one reply may hold, and far below what the backend sends."""
NOBODY = """
[models."test/nobody"]
credits = 1
timeout_s = 5
[[models."test/nobody".backends]]
kind = "openai"
url = "http://127.0.0.1:1/v1"
model = "nobody"
"""


EACH_LINE = """
import tarazu.service.log_sums
tarazu.service.log_sums.PASS_MAX = 1_000_000
"""
"""Let each failure have its line, where a hundred come one after the other; a flood is tried elsewhere."""


@pytest.fixture(scope="module")
def service(
    store: Store, module_backend: ScriptedBackend, catalogue: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningService]:
    """A running service for the module, whose log sums nothing up."""
    folder = tmp_path_factory.mktemp("service")
    environ = runs_first(tmp_path_factory.mktemp("first"), EACH_LINE)
    url = store.new_books(folder)
    running = RunningService(folder, module_backend.url, catalogue=catalogue, database_url=url, environ=environ)
    with checked(running) as running:
        yield running


@pytest.fixture(scope="module")
def catalogue() -> str:
    """Sell a model, too, that has no server behind it."""
    return CATALOGUE + NOBODY


async def _speaks_no_http(exchange: Exchange) -> None:
    exchange.writer.write(b"SSH-2.0-OpenSSH_9.2 " + CANARY.encode() + b"\r\n")
    exchange.writer.close()


async def _closes(exchange: Exchange) -> None:
    exchange.writer.close()


async def _closes_after_head(exchange: Exchange) -> None:
    await exchange.send_part(200, b"", 100)
    exchange.writer.close()


async def _breaks_a_chunk(exchange: Exchange) -> None:
    exchange.writer.write(b"HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n" + completion())
    exchange.writer.close()


async def _never_ends_its_head(exchange: Exchange) -> None:
    exchange.writer.write(b"HTTP/1.1 200 X\r\n")
    while not exchange.gone.done():
        exchange.writer.write(b"x-filler: " + b"x" * 1_000 + b"\r\n")
        await exchange.writer.drain()


async def _stalls_in_head(exchange: Exchange) -> None:
    exchange.writer.write(b"HTTP/1.1 200 X\r\ncontent-type: ")
    await exchange.gone


async def _trickles(exchange: Exchange) -> None:
    """Send a good answer, but so slowly that no pause in it is long, and all of it is too long."""
    body = completion()
    await exchange.send_part(200, b"", len(body))
    for place in range(len(body)):
        exchange.writer.write(body[place : place + 1])
        await exchange.writer.drain()
        await asyncio.sleep(HASTY_TIMEOUT_S / 10)


async def _says_continue_for_ever(exchange: Exchange) -> None:
    while not exchange.gone.done():
        exchange.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        await exchange.writer.drain()
        await asyncio.sleep(0)


def _message(message: object) -> bytes:
    return json.dumps({"choices": [{"message": message}]}).encode()


BROKEN_CONNECTIONS: dict[str, Behaviour] = {
    "reset before the head": resets,
    "closed before the head": _closes,
    "closed after the head": _closes_after_head,
    "reset in the body": resets_in_body,
    "closed in the body": closes_in_body,
    "broken chunk": _breaks_a_chunk,
    "no HTTP": _speaks_no_http,
    "endless head": _never_ends_its_head,
    "endless body": never_ends,
}
BAD_BODIES: dict[str, Behaviour] = {
    "HTML": answers(f"<html>{CANARY}</html>".encode(), content_type="text/html"),
    "plain text": answers(CANARY.encode(), content_type="text/plain"),
    "empty body": answers(b""),
    "no content": answers(b"", status=204),
    "half JSON": answers(completion()[:-5]),
    "two JSON bodies": answers(completion() * 2),
    "bytes that are no UTF-8": answers(completion().replace(b"Hello", b"H\xffllo")),
    "deep nesting": answers(b"[" * 100_000),
    "array": answers(b"[]"),
    "null": answers(b"null"),
    "string": answers(b'"Hello"'),
    "empty object": answers(b"{}"),
    "error with status 200": answers(json.dumps({"error": {"message": CANARY}}).encode()),
    "no choices": answers(json.dumps({"id": "x", "object": "chat.completion"}).encode()),
    "choices empty": answers(b'{"choices": []}'),
    "choices null": answers(b'{"choices": null}'),
    "choices an object": answers(b'{"choices": {"0": {"message": {"content": "Hello"}}}}'),
    "choice null": answers(b'{"choices": [null]}'),
    "first choice null, second good": answers(b'{"choices": [null, {"message": {"content": "Hello"}}]}'),
    "a stream's delta": answers(b'{"choices": [{"delta": {"content": "Hello"}}]}'),
    "message null": answers(_message(None)),
    "message a string": answers(_message("Hello")),
    "content missing": answers(_message({"role": "assistant"})),
    "content null": answers(_message({"content": None})),
    "content a number": answers(_message({"content": 5})),
    "content a list": answers(_message({"content": [{"type": "text", "text": "Hello"}]})),
    "content empty": answers(_message({"content": ""})),
    "content blank": answers(_message({"content": " \t\r\n "})),
    "content Unicode white space": answers(_message({"content": "\u2003\u00a0\u3000\u2028"})),
    "content a lone surrogate": answers(b'{"choices": [{"message": {"content": "\\ud83d"}}]}'),
    "larger than the bound": answers(completion("x" * 5_000_000)),
    "a gzip bomb": answers(
        gzip.compress(b" " * 64 * 1024 * 1024 + completion(), compresslevel=1), content_encoding="gzip"
    ),
    "bytes that are no gzip": answers(completion(), content_encoding="gzip"),
}
NOT_IN_TIME: dict[str, Behaviour] = {
    "stall before the head": stalls,
    "stall in the head": _stalls_in_head,
    "stall in the body": stalls_in_body,
    "a byte now and then": _trickles,
    "100 Continue for ever": _says_continue_for_ever,
}
STATUSES = (
    301,
    302,
    303,
    304,
    307,
    308,
    400,
    401,
    402,
    403,
    404,
    408,
    409,
    413,
    422,
    429,
    500,
    501,
    502,
    503,
    504,
    529,
)


def _status(status: int) -> Behaviour:
    """Refuse as a gateway of another vendor would, with everything in it that must not come through."""

    async def behave(exchange: Exchange) -> None:
        address = exchange.received.headers["host"]
        error = {"code": CANARY, "message": f"{CANARY}: key {BACKEND_KEY} refused at {address}", "type": CANARY}
        await exchange.send(
            status,
            b"" if status == 304 else json.dumps({"error": error}).encode(),
            location=f"http://{address}/v1/elsewhere",
            retry_after="0",
            www_authenticate=f'Bearer realm="{CANARY}"',
            set_cookie=f"session={CANARY}",
            x_request_id=CANARY,
        )

    return behave


def _assert_failed_try(
    service: RunningService, backend: ScriptedBackend, customer: Customer, answer: Answer, log_before: int
) -> None:
    """Assert all that holds after a failed try: the 502, the credits, the books, the silence."""
    assert assert_domain_error(answer, 502, "upstream_error") == {}
    assert rate_limit_headers(answer) == RATE_LIMIT_HEADERS
    assert credits_left(service, customer) == (3, 0)  # at once: the next look at the books sees them
    [(state, credits_, tries)] = look(
        service, "SELECT state, credits, tries FROM requests WHERE account_id = :id", id=customer.account_id
    )
    assert (state, credits_) == ("released", 1)
    assert 1 <= tries <= AGAIN_TRIES_MAX
    if backend.received:
        assert tries == len(backend.received)
    assert look(service, "SELECT 1 FROM daily_usage WHERE account_id = :id", id=customer.account_id) == []
    service.logged("backend_failed", since=log_before)
    log = service.log.read_text()[log_before:]
    for output in (answer.body.decode(), str(answer.headers), log):
        for secret in (CANARY, BACKEND_KEY, backend.url.split("/")[2], customer.secret, PROMPT, "Traceback"):
            assert secret not in output


def _ask(service: RunningService, backend: ScriptedBackend, behaviour: Behaviour, model: str = "test/one") -> float:
    """Ask a backend that fails in this way, and assert all that follows; tell how long it took, in seconds."""
    backend.behaviour = behaviour
    customer, log_before = service.customer("three"), len(service.log.read_text())
    begin_s = time.monotonic()
    answer = service.chat(customer, PROMPT, model=model)
    took_s = time.monotonic() - begin_s
    _assert_failed_try(service, backend, customer, answer, log_before)
    assert backend.received

    backend.reset()
    assert service.chat(customer, PROMPT).text == REPLY
    assert credits_left(service, customer) == (2, 0)
    return took_s


@rows("decisions.order_of_checks.17", "decisions.reply.3", "spec.codes.upstream_error", "spec.codes.rule_2")
@pytest.mark.parametrize("fault", BROKEN_CONNECTIONS)
def test_a_connection_that_breaks_is_a_502_that_costs_nothing(
    service: RunningService, backend: ScriptedBackend, fault: str
) -> None:
    """However a backend's answer breaks off: 502, credits back, nothing given away, and the next call is served."""
    _ask(service, backend, BROKEN_CONNECTIONS[fault])


@rows("decisions.order_of_checks.17", "spec.codes.upstream_error", "spec.codes.rule_2")
def test_a_backend_that_is_not_there_is_a_502_that_costs_nothing(
    service: RunningService, backend: ScriptedBackend
) -> None:
    """Nobody listens at the backend's address."""
    customer, log_before = service.customer("three"), len(service.log.read_text())
    answer = service.chat(customer, PROMPT, model="test/nobody")
    _assert_failed_try(service, backend, customer, answer, log_before)


@rows("decisions.reply.3", "decisions.order_of_checks.17", "spec.codes.upstream_error", "spec.codes.rule_2")
@pytest.mark.parametrize("fault", BAD_BODIES)
def test_a_body_without_a_text_is_a_502_that_costs_nothing(
    service: RunningService, backend: ScriptedBackend, fault: str
) -> None:
    """With a 2xx status too, anything but JSON with a text that is not blank in its first choice is a failed try."""
    _ask(service, backend, BAD_BODIES[fault])


@rows("decisions.order_of_checks.17", "spec.codes.upstream_error", "spec.codes.rule_2")
@pytest.mark.parametrize("fault", NOT_IN_TIME)
def test_a_reply_that_is_not_whole_in_time_is_a_502_that_costs_nothing(
    service: RunningService, backend: ScriptedBackend, fault: str
) -> None:
    """The model's time-out bounds the whole answer, not only the pauses in it."""
    took_s = _ask(service, backend, NOT_IN_TIME[fault], model="test/hasty")
    assert HASTY_TIMEOUT_S <= took_s < HASTY_TIMEOUT_S * 8


@rows("decisions.errors.3", "decisions.reply.3", "decisions.order_of_checks.17", "spec.codes.upstream_error")
@pytest.mark.parametrize("status", STATUSES)
def test_a_backends_own_status_is_never_passed_on(
    service: RunningService, backend: ScriptedBackend, status: int
) -> None:
    """Whatever a backend refuses with, its status, headers and words stay here; a redirection is not followed."""
    _ask(service, backend, _status(status))


@rows("decisions.reply.3")
@pytest.mark.parametrize("status", [301, 400, 404, 429, 500, 503])
def test_a_good_body_does_not_make_up_for_the_status(
    service: RunningService, backend: ScriptedBackend, status: int
) -> None:
    """Without a 2xx status a chat completion is a failed try."""
    _ask(service, backend, answers(completion(), status=status))


@rows("spec.codes.rule_2", "decisions.order_of_checks.17")
def test_a_failed_try_gives_back_to_the_balance_what_came_from_it(
    service: RunningService, backend: ScriptedBackend
) -> None:
    """Reserved credits return to the source that they were taken from."""
    backend.behaviour = resets
    customer = service.customer(None, balance=5)
    assert_domain_error(service.chat(customer, model="test/two"), 502, "upstream_error")
    assert credits_left(service, customer) == (0, 5)


@rows("spec.codes.rule_2")
def test_the_last_credit_comes_back_for_the_next_call(service: RunningService, backend: ScriptedBackend) -> None:
    """A customer with exactly one credit may fail as often as it takes, and then still gets its reply."""
    customer = service.customer(None, balance=1)
    for behaviour in (resets, answers(b""), answers(b"{}", status=500)):
        backend.behaviour = behaviour
        assert_domain_error(service.chat(customer), 502, "upstream_error")
    backend.reset()
    assert service.chat(customer).text == REPLY
    assert credits_left(service, customer) == (0, 0)


@rows("decisions.reply.3")
@pytest.mark.parametrize("behaviour", [never_ends, BAD_BODIES["a gzip bomb"]], ids=["endless", "gzip bomb"])
def test_an_endless_reply_takes_little_memory(
    service: RunningService, backend: ScriptedBackend, behaviour: Behaviour
) -> None:
    """What a backend sends is read no further than a bound, and the call ends at the backend too."""
    [worker] = workers(service)
    before = peak_bytes(worker)
    _ask(service, backend, behaviour)
    assert peak_bytes(worker) - before < MEMORY_BYTES_MAX


def test_the_log_tells_the_operator_which_model_failed_and_how(
    service: RunningService, backend: ScriptedBackend
) -> None:
    """A failed try leaves one line with the model, the backend's place in the configuration, and the fault."""
    log_before = len(service.log.read_text())
    backend.behaviour = _status(529)
    service.chat(service.customer(), model="test/two")
    event, *_again = service.logged("backend_failed", since=log_before)
    assert (event["model"], event["backend"]) == ("test/two", "test/two#1")
    assert (event["fault"], event["detail"]) == ("busy", "529")


ODD_BUT_VALID: dict[str, Behaviour] = {
    "status 201": answers(completion(), status=201),
    "another content type": answers(completion(), content_type="text/plain"),
    "compressed": answers(gzip.compress(completion()), content_encoding="gzip"),
    "a null in a later choice": answers(
        json.dumps({"choices": [{"message": {"content": REPLY}}, None, {"message": None}]}).encode()
    ),
    "nothing but the text": answers(_message({"content": REPLY})),
    "members of other types than usual": answers(completion(id=5, created="x", model=None, object=[])),
}


@rows("decisions.reply.3", "spec.chat_completion.choices.message.content")
@pytest.mark.parametrize("reply", ODD_BUT_VALID)
def test_a_text_in_the_first_choice_is_all_it_takes(
    service: RunningService, backend: ScriptedBackend, reply: str
) -> None:
    """A 2xx JSON body with a text in its first choice is served and charged, whatever else is odd about it."""
    backend.behaviour = ODD_BUT_VALID[reply]
    customer = service.customer("three")
    answer = service.chat(customer)
    assert (answer.status, answer.text) == (200, REPLY)
    assert answer.json["choices"][0]["finish_reason"] == "stop"
    assert credits_left(service, customer) == (2, 0)


HOSTILE_USAGE: dict[str, Any] = {
    "missing": None,
    "a text": "many",
    "a number": 12,
    "a list": [5, 7],
    "empty": {},
    "negative": {"prompt_tokens": -5, "completion_tokens": -1},
    "NaN": {"prompt_tokens": float("nan"), "completion_tokens": float("nan")},
    "infinite": {"prompt_tokens": float("inf"), "completion_tokens": float("-inf")},
    "huge": {"prompt_tokens": 10**9, "completion_tokens": 2**63},
    "of 5,000 digits": {"prompt_tokens": "DIGITS", "completion_tokens": "DIGITS"},
    "numbers in strings": {"prompt_tokens": "5", "completion_tokens": "7"},
    "fractions": {"prompt_tokens": 5.5, "completion_tokens": 0.1},
    "booleans": {"prompt_tokens": True, "completion_tokens": False},
    "null": {"prompt_tokens": None, "completion_tokens": None},
    "nested": {"prompt_tokens": {"value": 5}, "completion_tokens": [7]},
    "credits": {"credits": 1000, "total_tokens": -1, "billing_source": CANARY},
}


@rows("decisions.reply.2", "spec.chat_completion.usage.total_tokens", "spec.chat_completion.usage.credits")
@pytest.mark.parametrize("usage", HOSTILE_USAGE)
def test_nonsense_in_a_backends_usage_becomes_an_estimate_and_moves_no_credits(
    service: RunningService, backend: ScriptedBackend, usage: str
) -> None:
    """Token figures that cannot be are estimated, and the price is the model's."""
    body = completion(REPLY, HOSTILE_USAGE[usage]).replace(b'"DIGITS"', b"9" * 5_000)
    backend.behaviour = answers(body)
    customer = service.customer("three")
    answer = service.chat(customer, PROMPT)
    assert (answer.status, answer.text) == (200, REPLY)
    assert answer.json["usage"] == {
        "prompt_tokens": ESTIMATES[0],
        "completion_tokens": ESTIMATES[1],
        "total_tokens": sum(ESTIMATES),
        "credits": 1,
        "billing_source": "plan",
    }
    assert credits_left(service, customer) == (2, 0)


@rows("decisions.reply.2")
def test_one_figure_that_is_nonsense_leaves_the_other_as_it_is(
    service: RunningService, backend: ScriptedBackend
) -> None:
    """Each figure is taken or estimated for itself, and the total is always their sum."""
    backend.behaviour = replies(REPLY, {"prompt_tokens": 11, "completion_tokens": "x", "total_tokens": 999})
    usage = service.chat(service.customer(), PROMPT).json["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (11, 3, 14)


def test_connections_that_the_backend_closes_after_each_reply_cost_no_reply(
    service: RunningService, backend: ScriptedBackend
) -> None:
    """A backend may close a connection at any time between two calls."""

    async def answer_and_close(exchange: Exchange) -> None:
        await exchange.send(200, completion())
        exchange.writer.close()

    backend.behaviour = answer_and_close
    customer = service.customer()
    assert [service.chat(customer).status for _ in range(20)] == [200] * 20
