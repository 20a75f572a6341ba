"""The fault table for local models: whatever their process does, a try ends as one at any other server does.

The process is a scripted server here. Rows about names and certificates are left out: it is asked at an address of this
machine, without TLS. The real process, killed and damaged, is in test_local.py and tests/api/test_local_faults.py.
"""

import asyncio
import contextlib
from collections.abc import Iterator

import pytest

from tarazu.backends import local_backend
from tarazu.backends.http_client import HttpClient
from tarazu.backends.local_backend import LocalBackend
from tarazu.backends.port import BackendError, Fault, Reply
from tests.support.backend import Exchange, ScriptedBackend, answers, completion
from tests.support.dialects import asked
from tests.support.failing import CANARY, PROMPT, ROWS, Row, refuses
from tests.support.patience import PATIENCE_S
from tests.support.values import Clock

KEY = "sk-local-5eCr3t"
STALLED_S = 0.3
START_WAIT_S = 0.3
NOBODY = "http://127.0.0.1:1/v1"
FAILING = [name for name, row in ROWS.items() if row.fault is not None and row.place in {"server", "refused"}]


@pytest.fixture
def server() -> Iterator[ScriptedBackend]:
    """Stands for the process."""
    with ScriptedBackend() as server:
        yield server


def ask(url: str, *, timeout_s: float = PATIENCE_S) -> Reply:
    """Ask the local model at this address."""

    async def call() -> Reply:
        with contextlib.closing(HttpClient()) as http:
            backend = LocalBackend(http, Clock(), name="test#1", url=url, api_key=KEY)
            return await backend.ask(asked(("user", PROMPT)), timeout_s=timeout_s)

    return asyncio.run(call())


def _behave(server: ScriptedBackend, name: str, row: Row) -> str:
    if row.place == "refused":
        return NOBODY
    behaviours = row.behaviours or refuses(int(name), location=f"{server.root}/elsewhere")
    server.behaviour = behaviours["openai"]
    return server.url


@pytest.mark.parametrize("name", FAILING)
def test_a_process_that_fails_in_any_way_is_told_as_that(
    server: ScriptedBackend, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """By the same word as any server, and no key, prompt, address or word of its own is in the error."""
    monkeypatch.setattr(local_backend, "START_WAIT_S", START_WAIT_S)
    row = ROWS[name]
    url = _behave(server, name, row)
    with pytest.raises(BackendError) as caught:
        ask(url, timeout_s=STALLED_S if row.stalls else PATIENCE_S)
    assert caught.value.fault is row.fault
    assert row.detail in {None, caught.value.detail}
    said = f"{caught.value} {caught.value.detail}"
    assert [secret for secret in (KEY, PROMPT, CANARY, url.split("/")[2]) if secret in said] == []
    assert [received.path for received in server.received if received.path != "/v1/chat/completions"] == []


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row.fault is None])
def test_nonsense_in_the_usage_spoils_no_reply(server: ScriptedBackend, name: str) -> None:
    """It gives no figures."""
    assert ask(_behave(server, name, ROWS[name])) == Reply(text="Hello there.")


def test_a_process_that_starts_is_waited_for(server: ScriptedBackend) -> None:
    """It says that it is loading, and then it answers: one try for the pool."""
    states = [answers(b"{}", status=503), answers(b"{}", status=503), answers(completion())]

    async def behave(exchange: Exchange) -> None:
        await states.pop(0)(exchange)

    server.behaviour = behave
    assert ask(server.url).text == "Hello there."
    assert len(server.received) == 3


def test_a_process_that_does_not_come_is_waited_for_within_the_deadline(server: ScriptedBackend) -> None:
    """The time of the try bounds the wait, however long a start may take."""
    server.behaviour = answers(b"{}", status=503)
    with pytest.raises(BackendError) as caught:
        ask(server.url, timeout_s=STALLED_S)
    assert caught.value.fault in {Fault.STATUS, Fault.TIMEOUT}
    assert 1 < len(server.received) <= 1 + STALLED_S / local_backend.START_POLL_S
