"""Local models: the real embedded model in its real process."""

import asyncio
import contextlib
import http.client
import os
import queue
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlsplit

import msgspec
import pytest
import structlog

from tarazu.backends import local, local_backend
from tarazu.backends.http_client import HttpClient
from tarazu.backends.local import COMMAND, LocalAddress, LocalModel, LocalModels, State
from tarazu.backends.local_backend import LocalBackend
from tarazu.backends.local_model import LocalModelError, find_model
from tarazu.backends.local_server import CONTEXT_TOKENS_MAX, Answer, Order
from tarazu.backends.port import BackendError, Fault, Reply
from tarazu.domain.prompt import ChatRequest, Message, Settings
from tests.support.patience import PATIENCE_S
from tests.support.values import Clock

ABANDONED_TIMEOUT_S = 15
ANOTHER_BACKENDS_KEY = "sk-of-another-backend"
QUESTION = "What is the capital of France?"

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")


@pytest.fixture(scope="module")
def models() -> Iterator[LocalModels]:
    """The embedded model, ready."""
    models = LocalModels([None])
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("OPENAI_API_KEY", ANOTHER_BACKENDS_KEY)
        models.start()
        try:
            models.wait_ready(PATIENCE_S)
            yield models
        finally:
            models.stop()


@pytest.fixture
def model(models: LocalModels) -> LocalModel:
    """The one model of them."""
    (model,) = models
    return model


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for a process that starts again as long as it takes; how long a request does is test_local_backend.py's."""
    monkeypatch.setattr(local_backend, "START_WAIT_S", PATIENCE_S)


def asked(text: str, *, system: str | None = None, max_tokens: int = 24) -> ChatRequest:
    """Ask with a caller's own system message, or without one."""
    first = () if system is None else (Message("system", system),)
    return ChatRequest(model=None, messages=(*first, Message("user", text)), settings=Settings(max_tokens=max_tokens))


def replies(address: LocalAddress, *requests: ChatRequest, timeout_s: float = PATIENCE_S) -> list[Reply]:
    """Ask for all at once."""

    async def ask_all() -> list[Reply]:
        with contextlib.closing(HttpClient()) as client:
            backend = LocalBackend(client, Clock(), name="local", url=address.url, api_key=address.api_key)
            return await asyncio.gather(*(backend.ask(request, timeout_s=timeout_s) for request in requests))

    return asyncio.run(ask_all())


def status(address: LocalAddress, path: str, *, key: str | None = None, body: object = None) -> int:
    """Make a plain HTTP request, with or without a key."""
    url = urlsplit(address.url)
    assert url.hostname is not None
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    with contextlib.closing(http.client.HTTPConnection(url.hostname, url.port, timeout=PATIENCE_S)) as connection:
        if body is None:
            connection.request("GET", path, headers=headers)
        else:
            connection.request("POST", path, msgspec.json.encode(body), headers)
        return connection.getresponse().status


def ends(process_id: int) -> Callable[[], bool]:
    """Tell, when called, whether the process of now has ended, or does within PATIENCE_S."""
    process = os.pidfd_open(process_id)

    def has_ended() -> bool:
        with contextlib.closing(os.fdopen(process)):
            return bool(select.select([process], [], [], PATIENCE_S)[0])

    return has_ended


@linux_only
def test_a_process_that_stands_still_is_killed_and_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said, and the address stays: the next question is answered by the new process."""
    monkeypatch.setattr(local, "PROBE_PAUSE_S", 0.1)
    monkeypatch.setattr(local, "PROBE_TIMEOUT_S", 1.0)
    models = LocalModels([None])
    [model] = models
    with contextlib.closing(contextlib.ExitStack()) as stack, structlog.testing.capture_logs() as logs:
        stack.callback(models.stop)
        models.start()
        models.wait_ready(PATIENCE_S)
        assert model.process_id is not None
        hung, has_ended = model.process_id, ends(model.process_id)
        os.kill(hung, signal.SIGSTOP)
        assert has_ended()
        [reply] = replies(model.address, asked(QUESTION))
        assert "Paris" in reply.text
    assert [line["model_pid"] for line in logs if line["event"] == "local_model_hangs"] == [hung]


def test_names_paris_every_time(models: LocalModels) -> None:
    """Twenty answers, four at once, with and without a caller's system message, all name Paris."""
    address = models.addresses[None]
    systems = [None, "You are a helpful assistant.", "Answer briefly.", "You are a geography teacher."]
    requests = [asked(QUESTION, system=system) for system in systems]
    texts = [reply.text for _ in range(5) for reply in replies(address, *requests)]
    assert len(texts) == 20
    assert [text for text in texts if "Paris" not in text] == []


def test_reply_has_token_figures(models: LocalModels) -> None:
    """What the model has read and written is counted."""
    (reply,) = replies(models.addresses[None], asked(QUESTION, max_tokens=3))
    assert reply.completion_tokens == 3
    assert reply.prompt_tokens is not None
    assert 20 < reply.prompt_tokens < 60


@pytest.mark.parametrize("key", [None, "", "wrong"])
def test_refuses_a_call_without_its_key(models: LocalModels, key: str | None) -> None:
    """Other programs on the machine cannot use the model."""
    body = {"messages": [{"role": "user", "content": QUESTION}], "max_tokens": 1}
    assert status(models.addresses[None], "/v1/chat/completions", key=key, body=body) == 401


def test_shows_nobody_the_prompts_in_progress(models: LocalModels) -> None:
    """llama.cpp's page about what it is doing is off, also for those with the key."""
    address = models.addresses[None]
    assert status(address, "/slots", key=address.api_key) == 501


@linux_only
def test_key_is_where_nobody_looks(model: LocalModel) -> None:
    """The key is neither on the command line, nor in the environment, nor in a representation."""
    process = Path(f"/proc/{model.process_id}")
    key = model.address.api_key
    assert len(key) >= 32
    assert key.encode() not in (process / "cmdline").read_bytes()
    assert key.encode() not in (process / "environ").read_bytes()
    assert key not in f"{model!r} {model.address!r}"


@linux_only
def test_process_does_not_get_the_keys_of_other_backends(model: LocalModel) -> None:
    """Of the environment it gets what a program needs to run, and nothing of what the service keeps there."""
    environment = Path(f"/proc/{model.process_id}/environ").read_bytes()
    assert b"PATH=" in environment
    assert ANOTHER_BACKENDS_KEY.encode() not in environment


def test_killed_process_is_back_at_the_same_address(model: LocalModel) -> None:
    """After a kill -9 the next request waits for the new process, and is answered under the same address and key."""
    address, before = model.address, model.process_id
    assert before is not None
    os.kill(before, signal.SIGKILL)
    (reply,) = replies(address, asked(QUESTION))
    model.wait_ready(PATIENCE_S)
    assert "Paris" in reply.text
    assert model.address == address
    assert model.process_id not in {None, before}


def test_process_killed_under_a_request_still_answers_it(model: LocalModel) -> None:
    """A request that was being answered is asked again."""

    async def ask_and_kill() -> Reply:
        with contextlib.closing(HttpClient()) as client:
            backend = LocalBackend(client, Clock(), name="local", url=model.address.url, api_key=model.address.api_key)
            asking = asyncio.create_task(backend.ask(asked("Tell a story.", max_tokens=60), timeout_s=PATIENCE_S))
            await asyncio.sleep(0.3)  # the reply takes more than a second; nothing tells when it has begun
            assert model.process_id is not None
            os.kill(model.process_id, signal.SIGKILL)
            return await asking

    assert asyncio.run(ask_and_kill()).text


def test_signals_to_the_whole_group_leave_it_alone(model: LocalModel) -> None:
    """Ctrl-C and SIGTERM end the service, which may still need the model for the replies in progress."""
    before = model.process_id
    assert before is not None
    os.kill(before, signal.SIGINT)
    os.kill(before, signal.SIGTERM)
    assert replies(model.address, asked(QUESTION, max_tokens=1))
    assert model.process_id == before


def test_abandoned_requests_are_not_worked_on(models: LocalModels) -> None:
    """Eight requests for half a minute each, whose callers have left, do not keep the model from answering others."""
    address = models.addresses[None]

    async def abandon() -> None:
        with contextlib.closing(HttpClient()) as client:
            backend = LocalBackend(client, Clock(), name="local", url=address.url, api_key=address.api_key)
            long = asked("Write a poem about the sea.", max_tokens=4_000)
            asking = [asyncio.create_task(backend.ask(long, timeout_s=600)) for _ in range(8)]
            await asyncio.wait(asking, timeout=1)
            for task in asking:
                task.cancel()
            await asyncio.gather(*asking, return_exceptions=True)

    asyncio.run(abandon())
    assert replies(address, asked(QUESTION, max_tokens=1), timeout_s=ABANDONED_TIMEOUT_S)


def test_prompt_beyond_the_context_is_a_failed_try(models: LocalModels) -> None:
    """What the model cannot read is refused at once."""
    with pytest.raises(BackendError) as caught:
        replies(models.addresses[None], asked("語" * CONTEXT_TOKENS_MAX))
    assert (caught.value.fault, caught.value.detail) == (Fault.REQUEST_REFUSED, "400 exceed_context_size_error")


def test_stop_ends_the_process() -> None:
    """After `stop` the process is gone, and nobody listens at its address."""
    models = LocalModels([None])
    models.start()
    models.wait_ready(PATIENCE_S)
    (model,) = models
    assert model.process_id is not None
    has_ended = ends(model.process_id)
    models.stop()
    assert has_ended()
    assert model.state is State.STOPPED
    with pytest.raises(ConnectionRefusedError):
        status(model.address, "/health")


def test_stop_while_loading_ends_the_process() -> None:
    """A process that is still loading is ended as well, and no other one follows."""
    models = LocalModels([None])
    models.start()
    models.stop()
    (model,) = models
    assert (model.state, model.process_id) == (State.STOPPED, None)


def test_stop_while_loading_ends_the_wait_for_it() -> None:
    """Whoever waits hears of it at once, not when the time to load is over."""
    models = LocalModels([None])
    models.start()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(models.wait_ready, PATIENCE_S)
        models.stop()
        with pytest.raises(LocalModelError, match="it was stopped"):
            waiting.result(PATIENCE_S)


PARENT = """
import sys, threading
from tarazu.backends.local import LocalModels
models = LocalModels([None])
models.start()
models.wait_ready(60)
print(*(model.process_id for model in models), file=sys.stderr, flush=True)
threading.Event().wait(60)
"""


def test_process_ends_when_its_parent_is_killed() -> None:
    """A service that is killed with SIGKILL leaves no model behind."""
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as parent:
        assert parent.stderr is not None
        has_ended = ends(int(parent.stderr.readline()))
        parent.kill()
        assert has_ended()


def test_process_ends_with_its_standard_input() -> None:
    """Where the system does not end a process with its parent, the end of its standard input does."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    order = Order(path=str(find_model(None)), port=port, api_key="key", embedded=True)
    with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=local._environment()) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(msgspec.json.encode(order) + b"\n")
        process.stdin.flush()
        assert msgspec.json.decode(process.stdout.readline(), type=Answer) == Answer()
        process.stdin.close()
        assert process.wait(PATIENCE_S) == 0


def test_damaged_file_is_told(tmp_path: Path) -> None:
    """A file that llama.cpp cannot load is named with llama.cpp's own reason."""
    path = tmp_path / "damaged.gguf"
    with find_model(None).open("rb") as whole:
        path.write_bytes(whole.read(5_000_000))
    models = LocalModels([str(path)])
    models.start()
    try:
        with pytest.raises(LocalModelError, match=r"damaged\.gguf cannot be started: .* corrupted or incomplete"):
            models.wait_ready(PATIENCE_S)
    finally:
        models.stop()


def test_starts_again_after_growing_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that keeps dying is started again and again, each time later, up to a longest pause."""
    events: queue.Queue[MutableMapping[str, Any]] = queue.Queue()

    def take(_: object, __: str, event: MutableMapping[str, Any]) -> NoReturn:
        events.put(event)
        raise structlog.DropEvent

    monkeypatch.setattr(local, "log", structlog.wrap_logger(None, [take]))
    monkeypatch.setattr(local, "COMMAND", (sys.executable, "-c", "raise SystemExit('broken here')"))
    monkeypatch.setattr(local, "PAUSE_MIN_S", 0.01)
    monkeypatch.setattr(local, "PAUSE_MAX_S", 0.03)
    models = LocalModels([None])
    models.start()
    try:
        ended = [events.get(timeout=PATIENCE_S) for _ in range(4)]
        with pytest.raises(LocalModelError, match="exited with 1 while loading it; broken here"):
            models.wait_ready(PATIENCE_S)
    finally:
        models.stop()
    assert [event["restart_in_s"] for event in ended] == [0.01, 0.02, 0.03, 0.03]


def test_a_file_is_loaded_once(tmp_path: Path) -> None:
    """However many backends name a file, and in whichever way, one process serves them all."""
    path = tmp_path / "small.gguf"
    path.write_bytes(b"GGUF")
    (tmp_path / "link.gguf").symlink_to(path)
    names = [str(path), str(path), str(tmp_path / "." / "small.gguf"), str(tmp_path / "link.gguf"), None]
    models = LocalModels(names)
    try:
        assert len(list(models)) == 2
        assert len({models.addresses[name] for name in names[:4]}) == 1
        assert models.addresses[None] != models.addresses[str(path)]
    finally:
        models.stop()
