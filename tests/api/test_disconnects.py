"""A client that leaves before its reply is sent pays nothing; one that was sent a reply has paid, whatever follows."""

import asyncio
import json
import random
import select
import socket
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.support.answers import credits_left, look, states_of
from tests.support.at_once import at_once, wait_until
from tests.support.backend import Behaviour, Exchange, ScriptedBackend, completion, stalls, stalls_in_body
from tests.support.envelopes import assert_own_error
from tests.support.rows import rows
from tests.support.service import PATIENT, Customer, RunningService
from tests.support.stores import Store
from tests.support.windows import ONE_TAKEN, places
from tests.support.wire import Wire, chat_head, chunk

pytestmark = pytest.mark.both_stores

BODY = json.dumps({"model": "test/one", "prompt": "Hello"}).encode()
LEAVERS = 60
LEAVING_WITHIN_S = 0.06
REPLIES = 24


@pytest.fixture(scope="module")
def catalogue() -> str:
    """Sell models with time-outs far beyond what a test waits for: a backend call that ends has been cancelled."""
    return PATIENT


def _close(wire: Wire) -> None:
    wire.socket.close()


def _reset(wire: Wire) -> None:
    wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    wire.socket.close()


def _half_close(wire: Wire) -> None:
    wire.socket.shutdown(socket.SHUT_WR)


WAYS_TO_LEAVE: dict[str, Callable[[Wire], None]] = {"closes": _close, "resets": _reset, "half-closes": _half_close}


def _ask(wire: Wire, customer: Customer) -> None:
    wire.send(chat_head(customer, f"Content-Length: {len(BODY)}") + BODY)


@rows("decisions.reply.4", "decisions.added_by_this_project.13")
@pytest.mark.parametrize("way", WAYS_TO_LEAVE)
@pytest.mark.parametrize("behaviour", [stalls, stalls_in_body], ids=["before the head", "in the body"])
def test_a_client_that_leaves_while_the_backend_works_pays_nothing(
    service: RunningService, backend: ScriptedBackend, way: str, behaviour: Behaviour
) -> None:
    """The backend call is cancelled, and the credits are back."""
    backend.behaviour = behaviour
    customer = service.customer("three")
    with Wire(service.port) as wire:
        _ask(wire, customer)
        backend.wait_for_requests(1)
        assert states_of(service, customer) == ["held"]
        WAYS_TO_LEAVE[way](wire)
        backend.wait_for_leaving()
    wait_until(lambda: states_of(service, customer) == ["released"])
    assert credits_left(service, customer) == (3, 0)
    assert look(service, "SELECT 1 FROM daily_usage WHERE account_id = :id", id=customer.account_id) == []


@rows("decisions.reply.4")
def test_the_last_credit_is_free_again_when_its_client_leaves(
    service: RunningService, backend: ScriptedBackend
) -> None:
    """Another call of the same account can spend what the one that left had reserved."""
    backend.hold()
    customer = service.customer(None, balance=1)
    with Wire(service.port) as wire:
        _ask(wire, customer)
        backend.wait_for_requests(1)
    backend.wait_for_leaving()
    backend.let_go()
    wait_until(lambda: credits_left(service, customer) == (0, 1))
    assert service.chat(customer).status == 200
    assert credits_left(service, customer) == (0, 0)


@rows("decisions.reply.4")
@pytest.mark.parametrize("way", WAYS_TO_LEAVE)
@pytest.mark.parametrize(
    "part",
    [chat_head, lambda customer: chat_head(customer, "Content-Length: 100") + BODY],
    ids=["in the head", "in the body"],
)
def test_a_client_that_leaves_in_the_middle_of_its_request_pays_nothing(
    service: RunningService, backend: ScriptedBackend, way: str, part: Callable[[Customer], bytes]
) -> None:
    """Nothing is reserved, the backend is not asked, and the service serves on."""
    customer = service.customer("three")
    with Wire(service.port) as wire:
        wire.send(part(customer)[:-2])
        WAYS_TO_LEAVE[way](wire)
    if part is not chat_head:
        wait_until(lambda: places(service, customer) == ONE_TAKEN)  # its place in the windows is used all the same
    assert service.chat(customer).status == 200
    assert states_of(service, customer) == ["charged"]
    assert len(backend.received) == 1
    assert credits_left(service, customer) == (2, 0)


@rows("decisions.order_of_checks.10")
@pytest.mark.parametrize(
    ("line", "body"),
    [
        ("Transfer-Encoding: chunked", b"zz\r\n" + BODY),
        ("Transfer-Encoding: chunked", chunk(BODY)),
        ("Content-Length: 100", BODY),
    ],
    ids=["malformed chunk", "no last chunk", "fewer bytes than declared"],
)
def test_a_body_that_breaks_off_is_answered_to_who_still_listens(
    service: RunningService, backend: ScriptedBackend, line: str, body: bytes
) -> None:
    """400 as for any body that is not what it should be; nothing is reserved."""
    customer = service.customer("three")
    with Wire(service.port) as wire:
        wire.send(chat_head(customer, line) + body)
        wire.socket.shutdown(socket.SHUT_WR)
        assert_own_error(wire.answer(), 400)
    assert states_of(service, customer) == []
    assert backend.received == []


@rows("decisions.reply.4")
@pytest.mark.parametrize("way", WAYS_TO_LEAVE)
@pytest.mark.parametrize("read_bytes", [0, 1], ids=["unread", "after its first byte"])
def test_a_client_that_leaves_after_its_reply_was_sent_has_paid(
    service: RunningService, backend: ScriptedBackend, way: str, read_bytes: int
) -> None:
    """Leaving gives no money back once the reply is on its way, read or not."""
    customer = service.customer("three")
    with Wire(service.port) as wire:
        _ask(wire, customer)
        assert select.select([wire.socket], [], [], 10)[0], "no answer came"
        wire.socket.recv(read_bytes)
        WAYS_TO_LEAVE[way](wire)
    assert service.get("/health").status == 200
    assert states_of(service, customer) == ["charged"]
    assert credits_left(service, customer) == (2, 0)
    assert len(backend.received) == 1


@rows("decisions.reply.4", "decisions.shares_and_time_outs.5")
def test_whenever_clients_leave_their_credits_are_charged_or_back(
    service: RunningService, backend: ScriptedBackend
) -> None:
    """60 clients leave at as many moments around the reply: no hold stays, and whoever got a reply has paid."""
    chance = random.Random(4)  # noqa: S311 - moments, not secrets

    async def answer_soon(exchange: Exchange) -> None:
        await asyncio.sleep(LEAVING_WITHIN_S / 2)
        await exchange.send(200, completion())

    backend.behaviour = answer_soon
    customer = service.customer("large")

    def leave(stays_s: float) -> bool:
        with Wire(service.port) as wire:
            _ask(wire, customer)
            return select.select([wire.socket], [], [], stays_s)[0] != []

    moments_s = [chance.random() * LEAVING_WITHIN_S for _ in range(LEAVERS)]
    answered = sum(at_once([partial(leave, moment_s) for moment_s in moments_s]))

    settled: list[str] = []

    def are_settled() -> bool:  # on a busy machine some are admitted after their clients have left, also after this
        settled[:] = states_of(service, customer)
        return "held" not in settled and service.account(customer).used == settled.count("charged")

    wait_until(are_settled)
    assert set(settled) <= {"charged", "released"}
    assert answered <= settled.count("charged")


@rows("decisions.reply.4")
def test_the_charge_is_in_the_books_before_the_first_byte_of_the_reply(
    store: Store, backend: ScriptedBackend, tmp_path: Path
) -> None:
    """With 24 replies on their way, everything is killed at the first byte: each that has begun is charged."""
    with RunningService(tmp_path, backend.url, database_url=store.new_books(tmp_path)) as service:
        customers = [service.customer("three") for _ in range(REPLIES)]
        wires = [Wire(service.port) for _ in customers]
        backend.hold()
        for wire, customer in zip(wires, customers, strict=True):
            _ask(wire, customer)
        backend.wait_for_requests(REPLIES)
        backend.let_go()
        assert select.select([wire.socket for wire in wires], [], [], 10)[0], "no answer came"
        service.kill()

        begun = [customer for wire, customer in zip(wires, customers, strict=True) if _has_bytes(wire)]
        assert begun
        for customer in begun:
            assert states_of(service, customer) == ["charged"]
            assert service.account(customer).used == 1
        assert {state for customer in customers for state in states_of(service, customer)} <= {"charged", "held"}
        audit = service.run("audit")
        assert audit.returncode == 0, audit.stdout


def _has_bytes(wire: Wire) -> bool:
    with wire.socket:
        try:
            return wire.socket.recv(1) != b""
        except ConnectionResetError:
            return False
