"""Who is not known holds nothing that others need, and one account no more than its share."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial

import pytest
from starlette.types import Message

from tarazu.api import body
from tarazu.api.body import BROKEN_OFF, BodyReader
from tarazu.api.head import Head
from tarazu.domain.errors import Error, Refusal
from tarazu.domain.keys import PresentedKey, parse
from tests.support.answers import assert_refused
from tests.support.at_once import held, wait_until
from tests.support.backend import ScriptedBackend
from tests.support.envelopes import assert_domain_error
from tests.support.odd_keys import unknown_key
from tests.support.rows import rows
from tests.support.service import Customer, RunningService, checked
from tests.support.stores import Store
from tests.support.values import key_text
from tests.support.wire import Wire, chat_head

SHARE = 3
AT_ONCE_S = 2
"""Far less than the 10 s that a body may take."""
JSON_HEADERS = [(b"content-type", b"application/json")]


@pytest.fixture(scope="module")
def service(
    store: Store, module_backend: ScriptedBackend, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningService]:
    """A service that carries three completions at once of one account."""
    folder = tmp_path_factory.mktemp("service")
    url = store.new_books(folder)
    server = f"max_in_flight_per_account = {SHARE}"
    with checked(RunningService(folder, module_backend.url, server=server, database_url=url)) as running:
        yield running


@pytest.fixture
def stranger() -> Customer:
    """A key that is well-formed, and nobody's."""
    return Customer("", "", unknown_key())


@rows("decisions.order_of_checks.4", "decisions.shares_and_time_outs.1")
@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("Content-Length: 16385", b""),
        ("Content-Length: 1048576", b"{" * 8_000),
        ("Transfer-Encoding: chunked", b""),
        ("Transfer-Encoding: chunked", b"4\r\n{   \r\n"),
        ("Content-Length: 100", b""),
        ("Content-Length: 100", b'{"prompt": '),
    ],
)
def test_a_stranger_is_refused_before_the_body_has_come(
    service: RunningService, stranger: Customer, line: str, part: bytes
) -> None:
    """A body that is large, or not there yet, is read for a known key alone: the answer is 401, and at once."""
    with Wire(service.port) as wire:
        begin_s = time.monotonic()
        wire.send(chat_head(stranger, line) + part)
        assert_domain_error(wire.answer(), 401, "invalid_api_key")
        assert time.monotonic() - begin_s < AT_ONCE_S


@rows("decisions.order_of_checks.5")
def test_a_blocked_account_is_refused_before_the_body_has_come(service: RunningService) -> None:
    """Its key is known, and lets nothing in."""
    customer = service.customer()
    service.json("account", "set", customer.account_id, "--status", "blocked")
    with Wire(service.port) as wire:
        wire.send(chat_head(customer, "Content-Length: 100000"))
        assert_domain_error(wire.answer(), 403, "account_unavailable")


def test_uploads_of_strangers_keep_nobody_from_being_served(service: RunningService, stranger: Customer) -> None:
    """150 of a megabyte at once, each but for its last byte: small and large requests of a customer are served."""
    customer = service.customer()
    with ExitStack() as stack:
        for _ in range(150):
            wire = stack.enter_context(Wire(service.port))
            wire.send(chat_head(stranger, "Content-Length: 1048576"))
            wire.send_until_cut_off(b" " * 65_535, 1_048_575)
        assert service.chat(customer).status == 200
        assert service.chat(customer, filler="x" * 100_000).status == 200


@rows("decisions.shares_and_time_outs.1")
def test_an_account_has_its_share_of_what_is_carried_at_once(service: RunningService, backend: ScriptedBackend) -> None:
    """The fourth of one account is refused with Retry-After 1 and costs nothing; another account is served."""
    customer, other = service.customer("large"), service.customer("large")
    with held(backend, *[partial(service.chat, customer, "held")] * SHARE, only="held") as asked:
        refused = service.chat(service.another_key(customer))
        assert_refused(refused, 503, "system_stopped", counted=True)
        assert refused.headers["retry-after"] == "1"
        assert service.chat(other).status == 200
    assert [future.result().status for future in asked] == [200] * SHARE
    wait_until(lambda: service.account(customer).used == SHARE)
    assert service.chat(customer).status == 200


class Bodies:
    """A reader of bodies, and those that it is reading; every key is known, and each its own account's."""

    def __init__(self) -> None:
        self.looked_up: list[str] = []
        self.reader = BodyReader(self._identify)
        self.tasks: list[asyncio.Task[bytes | Refusal]] = []

    async def _identify(self, key: PresentedKey) -> str | Refusal:
        self.looked_up.append(key.id)
        return key.id

    async def begin(self, key: PresentedKey, part: bytes, declared: int | None) -> "asyncio.Queue[Message]":
        """Begin to read a body of which a part has come; answer with the way to send more."""
        parts: asyncio.Queue[Message] = asyncio.Queue()
        more = {"type": "http.request", "body": part, "more_body": len(part) != declared}
        parts.put_nowait(more)
        headers = [*JSON_HEADERS, *([] if declared is None else [(b"content-length", str(declared).encode())])]
        self.tasks.append(asyncio.create_task(self.reader.read(Head(dict(headers)), parts.get, key)))
        for _ in range(5):  # so that all is read that has come
            await asyncio.sleep(0)
        return parts


def key_of(number: int) -> PresentedKey:
    """Make the key of another account for each number."""
    key = parse(key_text(number))
    assert key is not None
    return key


@pytest.mark.anyio
async def test_small_bodies_that_come_in_parts_share_a_pot(monkeypatch: pytest.MonkeyPatch) -> None:
    """While there is room in it no key is looked up; then the next one is. A body that is there whole needs no room."""
    monkeypatch.setattr(body, "UNKNOWN_BYTES_MAX", 1_000)
    monkeypatch.setattr(body, "EARLY_S", 3_600)
    bodies = Bodies()
    ways = [await bodies.begin(key_of(number), b"x" * 300, 301) for number in range(4)]
    assert bodies.looked_up == [key_of(3).id]
    assert bodies.reader._bytes_of == {body.UNKNOWN: 900, key_of(3).id: 300}
    await bodies.begin(key_of(9), b"x" * 300, 300)
    assert bodies.tasks[4].done()
    for way in ways:
        way.put_nowait({"type": "http.request", "body": b"x", "more_body": False})
    assert await asyncio.gather(*bodies.tasks) == [b"x" * 301] * 4 + [b"x" * 300]
    assert bodies.reader._bytes_of == {}


@pytest.mark.anyio
async def test_an_account_holds_its_share_of_bodies(monkeypatch: pytest.MonkeyPatch) -> None:
    """One more than its share is refused, and one of another account is not; whoever breaks off gives the room back."""
    monkeypatch.setattr(body, "ACCOUNT_BYTES_MAX", 100_000)
    bodies = Bodies()
    ways = [await bodies.begin(key_of(1), b"x" * 40_000, None) for _ in range(3)]
    other = await bodies.begin(key_of(2), b"x" * 40_000, 50_000)
    refused = bodies.tasks[2].result()
    assert isinstance(refused, Refusal)
    assert (refused.error, refused.retry_after_s) == (Error.SYSTEM_STOPPED, 1)
    assert [task.done() for task in bodies.tasks] == [False, False, True, False]
    ways[0].put_nowait({"type": "http.disconnect"})
    assert await bodies.tasks[0] == Refusal(error=Error.INVALID_REQUEST, message=BROKEN_OFF)
    bodies.tasks[1].cancel()
    other.put_nowait({"type": "http.request", "body": b"x" * 10_000, "more_body": False})
    assert await bodies.tasks[3] == b"x" * 50_000
    with pytest.raises(asyncio.CancelledError):
        await bodies.tasks[1]
    assert bodies.reader._bytes_of == {}
