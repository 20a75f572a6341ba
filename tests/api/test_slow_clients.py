"""Clients that send half a request, or read no answer, or speak no HTTP: they cost the others nothing, and end."""

import http.client
import json
import select
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from tests.support.answers import credits_left
from tests.support.backend import Exchange, ScriptedBackend, completion, replies
from tests.support.books import sqlite_only
from tests.support.envelopes import assert_own_error
from tests.support.patience import PATIENCE_S
from tests.support.processes import open_files, processor_ns, workers
from tests.support.rows import rows
from tests.support.service import CHAT, Customer, RunningService
from tests.support.stores import Store
from tests.support.visitor import FORM
from tests.support.wire import Wire, chat_head

CLIENTS = 200
REQUESTS = 60
"""How many are measured together."""
TRIES = 3
"""On a busy machine one measurement says little; of several the least counts."""
RATIO_MAX = 2
HALF_SENT_MAX_S = 10
"""The time-outs of the service for the head of a request, and for its body."""
GRACE_S = 20
"""The longest time-out, and ten seconds more."""
LATE_S = 10
"""What a busy machine may add."""
BODY = json.dumps({"prompt": "Hello"}).encode()

HALF_SENT: tuple[Callable[[Customer], bytes], ...] = (
    lambda _customer: b"",
    lambda _customer: b"PRI * HT",
    lambda customer: chat_head(customer)[:-20],
    lambda customer: chat_head(customer, "Content-Length: 100") + b'{"prompt": ',
    lambda customer: chat_head(customer, "Transfer-Encoding: chunked") + b"40\r\n{",
)
"""Nothing, half of another protocol's greeting, half a head, half a body, half a chunk."""
WITH_BODY = (3, 4)


@contextmanager
def _half_sent(service: RunningService, customer: Customer) -> Iterator[list[Wire]]:
    """Keep 200 connections open on which half of something has been sent, of each kind as many."""
    with ExitStack() as stack:
        wires = [stack.enter_context(Wire(service.port)) for _ in range(CLIENTS)]
        for place, wire in enumerate(wires):
            wire.send(HALF_SENT[place % len(HALF_SENT)](customer))
        assert service.get("/health").status == 200
        yield wires


def _processor_ns(service: RunningService, customer: Customer) -> int:
    """Tell the processor time that requests take of the worker; a request that waits for others is never answered."""
    [worker] = workers(service)

    def taken_ns() -> int:
        before_ns = processor_ns(worker)
        assert [service.chat(customer).status for _ in range(REQUESTS)] == [200] * REQUESTS
        return processor_ns(worker) - before_ns

    return min(taken_ns() for _ in range(TRIES))


def test_half_sent_requests_do_not_slow_the_others(service: RunningService, backend: ScriptedBackend) -> None:
    """With 200 connections that stay half-sent, a completion takes about as much of a processor as without them."""
    customer = service.customer()
    before_ns = _processor_ns(service, customer)
    with _half_sent(service, customer):
        meanwhile_ns = _processor_ns(service, customer)
    assert meanwhile_ns < before_ns * RATIO_MAX
    assert len(backend.received) == 2 * TRIES * REQUESTS


@sqlite_only
@rows("decisions.errors.1", "decisions.added_by_this_project.3")
def test_half_sent_requests_end_within_their_time_out(service: RunningService, backend: ScriptedBackend) -> None:
    """A half-sent body is answered 408, half a head or less is cut off; no connection and no credit stays behind."""
    customer = service.customer("three")
    [worker] = workers(service)
    files_before = open_files(worker)
    with _half_sent(service, customer) as wires:
        begin_s = time.monotonic()
        for place, wire in enumerate(wires):
            wire.socket.settimeout(HALF_SENT_MAX_S + LATE_S)
            if place % len(HALF_SENT) in WITH_BODY:
                assert_own_error(wire.answer(), 408)
            assert wire.socket.recv(1) == b"", HALF_SENT[place % len(HALF_SENT)](customer)
        assert time.monotonic() - begin_s < HALF_SENT_MAX_S + LATE_S
    assert open_files(worker) < files_before + CLIENTS / 10
    assert credits_left(service, customer) == (3, 0)
    assert backend.received == []


@sqlite_only
def test_a_byte_now_and_then_does_not_lengthen_the_time_out(service: RunningService) -> None:
    """What counts is when the whole head, body or form has come, not when its last byte came; then all is closed."""
    customer = service.customer()
    here = f"127.0.0.1:{service.port}"
    form = f"POST /panel/sign-in HTTP/1.1\r\nHost: {here}\r\nOrigin: http://{here}\r\nContent-Type: {FORM}\r\n"
    with ExitStack() as stack:
        wires = [stack.enter_context(Wire(service.port)).socket for _ in range(3)]
        parts = (HALF_SENT[2](customer), HALF_SENT[3](customer), f"{form}Content-Length: 1000\r\n\r\na=".encode())
        for half_sent, part in zip(wires, parts, strict=True):
            half_sent.sendall(part)
        begin_s = time.monotonic()
        answers = dict.fromkeys(wires, b"")
        waiting = set(wires)
        while waiting:
            for answering in select.select(list(waiting), [], [], 0.5)[0]:
                with suppress(ConnectionResetError):  # of the byte that came after the end
                    answers[answering] += (came := answering.recv(65_536))
                    if came:
                        continue
                waiting.remove(answering)
            for half_sent in waiting:
                with suppress(BrokenPipeError, ConnectionResetError):
                    half_sent.sendall(b" ")
            assert time.monotonic() - begin_s < HALF_SENT_MAX_S + LATE_S
        assert [answers[wire][:13] for wire in wires] == [b"", b"HTTP/1.1 408 ", b"HTTP/1.1 408 "]


@sqlite_only
def test_the_service_stops_in_time_with_half_sent_requests(
    store: Store, backend: ScriptedBackend, tmp_path: Path
) -> None:
    """SIGTERM with 200 of them open: no worker has to be killed after the grace period, and the status is 0."""
    with RunningService(tmp_path, backend.url, database_url=store.new_books(tmp_path)) as service:
        customer = service.customer()
        assert service.chat(customer).status == 200
        with _half_sent(service, customer):
            service.process.send_signal(signal.SIGTERM)
            assert service.process.wait(GRACE_S + LATE_S) == 0
        assert "Killing" not in service.log.read_text()
        assert service.account(customer).used == 1


def test_clients_that_do_not_read_delay_nobody_but_themselves(
    service: RunningService, backend: ScriptedBackend
) -> None:
    """Twenty replies of a megabyte each that nobody fetches: they are paid, and the others are served as before."""
    customer, other = service.customer(), service.customer()
    before_ns = _processor_ns(service, other)
    backend.behaviour = replies("x" * 1_000_000)
    with ExitStack() as stack:
        for _ in range(20):
            wire = stack.enter_context(Wire(service.port, receive_buffer_bytes=4_096))
            wire.send(chat_head(customer, f"Content-Length: {len(BODY)}") + BODY)
            assert select.select([wire.socket], [], [], 10)[0], "no answer came"
        backend.reset()
        assert _processor_ns(service, other) < before_ns * RATIO_MAX
        assert service.account(customer).used == 20


async def _echoes(exchange: Exchange) -> None:
    await exchange.send(200, completion(exchange.received.body["messages"][-1]["content"]))


def test_requests_sent_ahead_are_answered_in_their_order(service: RunningService, backend: ScriptedBackend) -> None:
    """Three requests in one go on one connection are three replies, each charged once."""
    backend.behaviour = _echoes
    customer = service.customer("three")
    bodies = [json.dumps({"prompt": f"prompt {number}"}).encode() for number in range(3)]
    lines = [["Connection: keep-alive"], ["Connection: keep-alive"], ["Connection: close"]]
    with Wire(service.port) as wire:
        for body, more in zip(bodies, lines, strict=True):
            wire.send(chat_head(customer, f"Content-Length: {len(body)}", *more) + body)
        answers = wire.read_to_end()
    assert answers.count(b"HTTP/1.1 200 OK") == 3
    assert answers.index(b'"prompt 0"') < answers.index(b'"prompt 1"') < answers.index(b'"prompt 2"')
    assert credits_left(service, customer) == (0, 0)


def test_garbage_after_a_request_does_not_spoil_its_reply(service: RunningService, backend: ScriptedBackend) -> None:
    """The reply comes whole and is charged; the garbage is refused, and the connection closed."""
    customer = service.customer("three")
    with Wire(service.port) as wire:
        wire.send(chat_head(customer, f"Content-Length: {len(BODY)}") + BODY + b"\x00\x01 nonsense\r\n\r\n")
        answers = wire.read_to_end()
    assert answers.startswith(b"HTTP/1.1 200 OK")
    assert answers.count(b"HTTP/1.1 400 Bad Request") == 1
    assert credits_left(service, customer) == (2, 0)
    assert len(backend.received) == 1


NO_REQUESTS: dict[str, bytes] = {
    "garbage": b"\x00\x01\x02 nonsense\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 64,
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
    "HTTP/0.9": b"GET /health\r\n\r\n",
    "a path that is no ASCII": b"GET /\xff HTTP/1.1\r\nHost: test\r\n\r\n",
    "a folded header": b"GET /health HTTP/1.1\r\nHost: test\r\n folded\r\n\r\n",
    "a header of a megabyte": b"GET /health HTTP/1.1\r\nHost: test\r\nX: " + b"x" * 1_000_000,
    "a thousand headers": b"GET /health HTTP/1.1\r\nHost: test\r\n" + b"X: x\r\n" * 1_000 + b"\r\n",
    "a path of a megabyte": b"GET /" + b"x" * 1_000_000,
    "two lengths": b"POST /health HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
    "a negative length": b"POST /health HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
}
"""What is no HTTP/1 request, or none that is taken."""
REFUSALS = (b"HTTP/1.1 400 ", b"HTTP/1.1 414 ", b"HTTP/1.1 431 ", b"")


@pytest.mark.parametrize("sent", NO_REQUESTS)
@rows("decisions.added_by_this_project.9")
def test_what_is_no_request_is_refused_and_cut_off(service: RunningService, sent: str) -> None:
    """It gets a 4xx status at most, the connection is closed, and the next client is served."""
    with Wire(service.port) as wire:
        try:
            wire.send(NO_REQUESTS[sent])
            answer = wire.read_to_end()
        except (ConnectionResetError, BrokenPipeError):  # closed while there was more to read
            answer = b""
    assert answer[:13] in REFUSALS
    assert answer.count(b"HTTP/1.1") <= 1
    assert service.get("/health").status == 200


def test_a_second_request_cannot_be_smuggled_in_a_body(service: RunningService, backend: ScriptedBackend) -> None:
    """With both a length and chunks declared, one answer comes and the connection is closed."""
    customer = service.customer("three")
    smuggled = b"0\r\n\r\n" + chat_head(customer, f"Content-Length: {len(BODY)}") + BODY
    with Wire(service.port) as wire:
        wire.send(chat_head(customer, f"Content-Length: {len(smuggled)}", "Transfer-Encoding: chunked") + smuggled)
        answer = wire.read_to_end()
    assert answer.startswith(b"HTTP/1.1 400 Bad Request")
    assert answer.count(b"HTTP/1.1") == 1
    assert backend.received == []
    assert credits_left(service, customer) == (3, 0)


@pytest.mark.parametrize("line", ["Expect: 100-continue", "Connection: close", "Upgrade: h2c"])
def test_usual_header_lines_do_no_harm(service: RunningService, backend: ScriptedBackend, line: str) -> None:
    """What proxies and clients send along does not keep a completion from being served."""
    customer = service.customer("three")
    with Wire(service.port) as wire:
        wire.send(chat_head(customer, f"Content-Length: {len(BODY)}", line) + BODY)
        assert wire.answer().text == "Hello there."
    assert len(backend.received) == 1
    assert credits_left(service, customer) == (2, 0)


def test_http_1_0_is_served(service: RunningService) -> None:
    """An old client gets its completion, and its connection closed."""
    customer = service.customer("three")
    head = chat_head(customer, f"Content-Length: {len(BODY)}").replace(b"HTTP/1.1", b"HTTP/1.0")
    with Wire(service.port) as wire:
        wire.send(head + BODY)
        assert wire.answer().text == "Hello there."
        assert wire.socket.recv(1) == b""


def test_a_kept_connection_serves_again_and_again(service: RunningService) -> None:
    """One connection, fifty completions."""
    customer = service.customer()
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=PATIENCE_S)
    headers = {"Authorization": customer.bearer, "Content-Type": "application/json"}
    connection.connect()
    assert isinstance(connection.sock, socket.socket)
    port = connection.sock.getsockname()[1]
    for _ in range(50):
        connection.request("POST", CHAT, BODY, headers)
        response = connection.getresponse()
        assert (response.status, len(response.read()) > 0) == (200, True)
        assert connection.sock.getsockname()[1] == port
    connection.close()
    assert service.account(customer).used == 50
