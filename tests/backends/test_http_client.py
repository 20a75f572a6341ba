"""The HTTP client for model servers, against a real server: what it sends where, and how its calls end."""

import asyncio
import contextlib
import os
from collections.abc import Iterator

import pytest

from tarazu.backends.http_client import REPLY_BYTES_MAX, HttpClient
from tarazu.backends.port import BackendError, Fault
from tests.support.backend import Behaviour, ScriptedBackend, answers, resets, stalls, stalls_in_body
from tests.support.patience import PATIENCE_S
from tests.support.processes import no_file_left

ELSEWHERE = "http://model-server.invalid/v1/chat/completions"
"""A name that does not resolve: only a proxy can take a request to it."""
BODY = b'{"messages": [{"role": "user", "content": "Hello"}]}'
PROXY_VARIABLES = ("http_proxy", "HTTP_PROXY", "no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY")


async def _post(url: str, *, direct: bool = False, timeout_s: float = PATIENCE_S) -> tuple[int, bytes]:
    client = HttpClient()
    try:
        reply = await client.post_json(
            url, BODY, headers={"authorization": "Bearer k"}, timeout_s=timeout_s, direct=direct
        )
    finally:
        client.close()
    return reply.status, reply.body


def _fault(url: str, timeout_s: float = PATIENCE_S) -> Fault:
    with pytest.raises(BackendError) as caught:
        asyncio.run(_post(url, timeout_s=timeout_s))
    assert "127.0.0.1" not in str(caught.value)
    assert "invalid/" not in str(caught.value)
    return caught.value.fault


@pytest.fixture
def backend() -> Iterator[ScriptedBackend]:
    """A model server."""
    with ScriptedBackend() as backend:
        yield backend


@pytest.fixture
def proxied(backend: ScriptedBackend, monkeypatch: pytest.MonkeyPatch) -> ScriptedBackend:
    """The server, as the proxy that the environment names."""
    for name in PROXY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", backend.url.removesuffix("/v1"))
    return backend


def test_a_call_is_json_with_the_headers_that_were_given(backend: ScriptedBackend) -> None:
    """The server gets one POST with the body and the key, and its status and body come back."""
    backend.behaviour = answers(b"anything", status=418)
    assert asyncio.run(_post(backend.url + "/chat/completions")) == (418, b"anything")
    [received] = backend.received
    assert received.path == "/v1/chat/completions"
    assert received.body == {"messages": [{"role": "user", "content": "Hello"}]}
    assert received.headers["content-type"] == "application/json"
    assert received.headers["authorization"] == "Bearer k"
    assert received.headers["user-agent"] == "tarazu"


@pytest.mark.parametrize("timeout_s", [0, -0.001])
def test_a_call_whose_time_is_over_is_not_made(backend: ScriptedBackend, timeout_s: float) -> None:
    """It fails like one that runs out of time, also where the time was over a while ago."""
    assert _fault(f"{backend.url}/chat/completions", timeout_s) is Fault.TIMEOUT
    assert backend.received == []


def test_a_proxy_of_the_environment_is_used(proxied: ScriptedBackend) -> None:
    """Where the way out leads through a proxy, model servers are reached through it."""
    proxied.behaviour = answers(b"{}")
    assert asyncio.run(_post(ELSEWHERE)) == (200, b"{}")
    assert [received.path for received in proxied.received] == [ELSEWHERE]


def test_a_direct_call_passes_by_the_proxy(proxied: ScriptedBackend) -> None:
    """A model on this machine is not asked through a proxy elsewhere."""
    with pytest.raises(BackendError):
        asyncio.run(_post(ELSEWHERE, direct=True))
    assert proxied.received == []


@pytest.mark.parametrize("behaviour", [stalls, stalls_in_body])
def test_a_cancelled_call_is_cut_off_at_the_server(backend: ScriptedBackend, behaviour: Behaviour) -> None:
    """Before the head of the answer and in its body: the server sees the end long before the time is over."""

    async def cancel() -> None:
        call = asyncio.create_task(_post(backend.url))
        await asyncio.to_thread(backend.wait_for_requests, 1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await asyncio.to_thread(backend.wait_for_leaving)

    backend.behaviour = behaviour
    asyncio.run(cancel())


def test_every_failure_has_its_name(backend: ScriptedBackend) -> None:
    """Not there, cut off, not in time, too long: each is a BackendError that holds no address."""
    assert _fault("http://127.0.0.1:1/v1") is Fault.UNREACHABLE
    backend.behaviour = resets
    assert _fault(backend.url) is Fault.UNREACHABLE
    for behaviour in (stalls, stalls_in_body):
        backend.behaviour = behaviour
        assert _fault(backend.url, timeout_s=0.1) is Fault.TIMEOUT
    backend.behaviour = answers(b"x" * (REPLY_BYTES_MAX + 1))
    assert _fault(backend.url) is Fault.INVALID_REPLY


def test_idle_connections_make_room_for_those_that_are_needed() -> None:
    """Also those to other servers: in all there are as many as may be used at once, and none where files run out."""

    async def run(*backends: ScriptedBackend) -> None:
        with contextlib.closing(HttpClient(connections_max=3)) as client:

            async def post(backend: ScriptedBackend) -> None:
                await client.post_json(backend.url, BODY, headers={}, timeout_s=PATIENCE_S)

            def idle() -> int:
                return sum(route.idle for route in client._routes.values())

            for backend in backends:
                await asyncio.gather(*(post(backend) for _ in range(3)))
                assert idle() <= 3
            await post(backends[0])
            kept = idle()
            assert 1 <= kept <= 3
            with no_file_left(os.getpid()):
                client._routes[next(iter(client._routes))].take()  # as if it were in use
                await post(backends[1])

    with ScriptedBackend() as one, ScriptedBackend() as other:
        for backend in (one, other):
            backend.behaviour = answers(b"{}")
        asyncio.run(run(one, other))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"], ids=["by its address", "by its name"])
def test_running_out_of_open_files_is_our_own_fault(backend: ScriptedBackend, host: str) -> None:
    """Whatever it is that could not be opened, a connection or the list of names: the server has done nothing."""

    async def post() -> None:
        with no_file_left(os.getpid()):
            await _post(backend.url.replace("127.0.0.1", host))

    with pytest.raises(BackendError) as caught:
        asyncio.run(post())
    assert caught.value.fault is Fault.NO_OPEN_FILE
    assert backend.received == []


def test_a_redirection_is_an_answer(backend: ScriptedBackend) -> None:
    """It is not followed: the key would go along."""
    backend.behaviour = answers(b"", status=307, location=backend.url + "/elsewhere")
    assert asyncio.run(_post(backend.url)) == (307, b"")
    assert len(backend.received) == 1
