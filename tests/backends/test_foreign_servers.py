"""Model servers that others wrote: llama.cpp's own, and two that imitate the makers' APIs."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import Struct

from tarazu.backends.local import LocalModels
from tarazu.backends.local_server import CONTEXT_TOKENS_MAX
from tarazu.backends.port import BackendError, Fault
from tarazu.backends.secrets import Secrets
from tarazu.domain.catalogue import BackendSpec
from tests.support.dialects import ask, asked
from tests.support.lazily import lazily
from tests.support.node import find_node
from tests.support.patience import PATIENCE_S

if TYPE_CHECKING:
    import llmock.scenarios as llmock_scenarios
    import llmock.testing as llmock_testing
else:
    llmock_scenarios, llmock_testing = lazily("llmock.scenarios"), lazily("llmock.testing")

AIMOCK = Path(__file__).parents[1] / "npm/node_modules/@copilotkit/aimock/dist/cli.js"
AIMOCK_KEY = "sk-aimock"
LISTENING = "listening on "
QUESTION = "What is the capital of France?"
SETTINGS: dict[str, Any] = {
    "temperature": 0,  # the likeliest words, so that llama.cpp's model names Paris
    "top_p": 0.9,
    "max_tokens": 24,
    "stop": ("END",),
    "seed": 7,
    "presence_penalty": 0.1,
    "frequency_penalty": 0.1,
}


def _failure(status: int, **error: str) -> dict[str, Any]:
    return {"error": {"message": "No.", **error}, "status": status, "retryAfter": 7}


FIXTURES = {
    "fixtures": [
        {"match": {"userMessage": question}, "response": response}
        for question, response in {
            QUESTION: {"content": "Paris."},
            "Think.": {"content": "So.", "reasoning": "Hm."},
            "Be busy.": _failure(429, type="rate_limit_error", code="rate_limit_exceeded"),
            "Be unpaid.": _failure(429, type="insufficient_quota", code="insufficient_quota"),
            "Be ill.": _failure(500, type="api_error"),
        }.items()
    ]
}


class Server(Struct, frozen=True):
    """A running server, and how it is asked in each kind that it speaks."""

    kinds: dict[str, BackendSpec]
    key: str


@contextmanager
def _llama() -> Iterator[Server]:
    models = LocalModels([None])
    models.start()
    try:
        models.wait_ready(PATIENCE_S)
        address = models.addresses[None]
        kinds = {
            "openai": BackendSpec(kind="openai", url=address.url, model="local"),
            "anthropic": BackendSpec(kind="anthropic", url=address.url.removesuffix("/v1"), model="local"),
        }
        yield Server(kinds, address.api_key)
    finally:
        models.stop()


@contextmanager
def _aimock(folder: Path) -> Iterator[Server]:
    fixtures = folder / "fixtures.json"
    fixtures.write_text(json.dumps(FIXTURES))
    command = [find_node().program, str(AIMOCK), "--port", "0", "--strict", "--fixtures", str(fixtures)]
    environ = {"PATH": os.environ["PATH"], "AIMOCK_API_KEYS": AIMOCK_KEY}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ) as process:
        assert process.stdout is not None
        try:
            root = next(line.partition(LISTENING)[2].strip() for line in process.stdout if LISTENING in line)
            kinds = {
                "openai": BackendSpec(kind="openai", url=f"{root}/v1"),
                "azure": BackendSpec(
                    kind="openai",
                    url=f"{root}/openai/deployments/d",
                    query={"api-version": "2024-10-21"},
                    key_header="api-key",
                ),
                "anthropic": BackendSpec(kind="anthropic", url=root),
                "gemini": BackendSpec(kind="gemini", url=f"{root}/v1beta"),
            }
            yield Server(kinds, AIMOCK_KEY)
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


@pytest.fixture(scope="module")
def llmock_server() -> Iterator[llmock_testing.LLMockServer]:
    """A server that answers and fails as it is told, in many makers' ways."""
    with llmock_testing.LLMockServer() as server:
        yield server


@pytest.fixture(scope="module")
def servers(
    tmp_path_factory: pytest.TempPathFactory, llmock_server: llmock_testing.LLMockServer
) -> Iterator[dict[str, Server]]:
    """All of them, by name."""
    root = llmock_server.url
    mocked = {
        "openai": BackendSpec(kind="openai", url=f"{root}/v1"),
        "mistral": BackendSpec(kind="openai", url=f"{root}/mistral/v1"),
        "groq": BackendSpec(kind="openai", url=f"{root}/groq/openai/v1"),
        "anthropic": BackendSpec(kind="anthropic", url=f"{root}/anthropic"),
        "gemini": BackendSpec(kind="gemini", url=f"{root}/gemini/v1beta"),
    }
    with _llama() as llama, _aimock(tmp_path_factory.mktemp("aimock")) as aimock:
        yield {"llama": llama, "aimock": aimock, "llmock": Server(mocked, "sk-llmock")}


SPOKEN = [
    ("llama", "openai"),
    ("llama", "anthropic"),
    ("aimock", "openai"),
    ("aimock", "azure"),
    ("aimock", "anthropic"),
    ("aimock", "gemini"),
    ("llmock", "openai"),
    ("llmock", "mistral"),
    ("llmock", "groq"),
    ("llmock", "anthropic"),
    ("llmock", "gemini"),
]
MOCKED = [spoken for spoken in SPOKEN if spoken[0] == "llmock"]
SCRIPTED = [spoken for spoken in SPOKEN if spoken[0] == "aimock"]
LLAMAS = [spoken for spoken in SPOKEN if spoken[0] == "llama"]


def fault(server: Server, kind: str, request: Any = None, *, key: str | None = None) -> BackendError:
    """Ask, and tell how it fails."""
    with pytest.raises(BackendError) as caught:
        ask(server.kinds[kind], request or asked(("user", QUESTION)), Secrets(api_key=key or server.key))
    return caught.value


@pytest.mark.parametrize(("name", "kind"), SPOKEN)
def test_a_conversation_with_every_setting_is_answered(
    servers: dict[str, Server], llmock_server: llmock_testing.LLMockServer, name: str, kind: str
) -> None:
    """Nothing that is sent is refused, and the text comes back with its figures."""
    llmock_server.state.reset()
    llmock_server.state.scenarios.add(llmock_scenarios.Reply(text="Paris."))
    request = asked(
        ("system", "Answer briefly."),
        ("user", "Hello"),
        ("assistant", "Hello!"),
        ("system", "Be kind."),
        ("user", QUESTION),
        **SETTINGS,
    )
    reply = ask(servers[name].kinds[kind], request, Secrets(api_key=servers[name].key))
    assert "Paris" in reply.text
    assert reply.prompt_tokens is not None
    assert reply.completion_tokens is not None


@pytest.mark.parametrize(("name", "kind"), SPOKEN)
def test_a_request_without_settings_is_answered(
    servers: dict[str, Server], llmock_server: llmock_testing.LLMockServer, name: str, kind: str
) -> None:
    """What a server must have it gets."""
    llmock_server.state.reset()
    llmock_server.state.scenarios.add(llmock_scenarios.Reply(text="Paris."))
    request = asked(("user", QUESTION))
    assert "Paris" in ask(servers[name].kinds[kind], request, Secrets(api_key=servers[name].key)).text


@pytest.mark.parametrize(("name", "kind"), LLAMAS + SCRIPTED)
def test_a_wrong_key_is_told_as_that(servers: dict[str, Server], name: str, kind: str) -> None:
    """The header that carries the key is the one that the server looks at."""
    error = fault(servers[name], kind, key="wrong")
    assert (error.fault, error.detail) == (Fault.KEY_REFUSED, "401")


@pytest.mark.parametrize(("name", "kind"), LLAMAS)
def test_a_prompt_beyond_the_context_is_the_requests_fault(servers: dict[str, Server], name: str, kind: str) -> None:
    """Another server with this model would not take it either."""
    error = fault(servers[name], kind, asked(("user", "語" * CONTEXT_TOKENS_MAX)))
    assert error.fault is Fault.REQUEST_REFUSED


@pytest.mark.parametrize(("name", "kind"), LLAMAS)
def test_a_conversation_that_the_assistant_begins_is_answered(servers: dict[str, Server], name: str, kind: str) -> None:
    """A greeting that stands before the user's first word does not turn a server away."""
    request = asked(("assistant", "Hello, I am the assistant."), ("user", QUESTION), max_tokens=24)
    assert ask(servers[name].kinds[kind], request, Secrets(api_key=servers[name].key)).text


@pytest.mark.parametrize(("name", "kind"), SCRIPTED)
def test_thinking_is_no_part_of_the_reply(servers: dict[str, Server], name: str, kind: str) -> None:
    """Wherever a server puts it."""
    request = asked(("user", "Think."))
    assert ask(servers[name].kinds[kind], request, Secrets(api_key=servers[name].key)).text == "So."


@pytest.mark.parametrize(("name", "kind"), SCRIPTED)
@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("Be busy.", (Fault.BUSY, "429", 7)),
        ("Be ill.", (Fault.STATUS, "500", None)),
    ],
)
def test_a_scripted_failure_is_told_as_what_it_is(
    servers: dict[str, Server], name: str, kind: str, prompt: str, expected: tuple[Fault, str, float | None]
) -> None:
    """With the rest that is asked for."""
    error = fault(servers[name], kind, asked(("user", prompt)))
    assert (error.fault, error.detail, error.retry_after_s) == expected


def test_an_unpaid_key_is_not_waited_for(servers: dict[str, Server]) -> None:
    """The status is that of a busy server, and waiting does not help."""
    error = fault(servers["aimock"], "openai", asked(("user", "Be unpaid.")))
    assert (error.fault, error.detail) == (Fault.KEY_REFUSED, "429 insufficient_quota")


@pytest.mark.parametrize(("name", "kind"), MOCKED)
@pytest.mark.parametrize(
    ("status", "retry_after", "expected"),
    [
        (401, None, (Fault.KEY_REFUSED, None)),
        (403, None, (Fault.KEY_REFUSED, None)),
        (404, None, (Fault.STATUS, None)),
        (413, None, (Fault.REQUEST_REFUSED, None)),
        (429, 7, (Fault.BUSY, 7)),
        (500, None, (Fault.STATUS, None)),
        (503, 7, (Fault.BUSY, 7)),
        (529, 3, (Fault.BUSY, 3)),
    ],
)
def test_a_makers_failure_is_told_as_what_it_is(
    servers: dict[str, Server],
    llmock_server: llmock_testing.LLMockServer,
    name: str,
    kind: str,
    status: int,
    retry_after: int | None,
    expected: tuple[Fault, float | None],
) -> None:
    """In the form of each maker, with the number as the detail."""
    llmock_server.state.reset()
    llmock_server.state.scenarios.add(llmock_scenarios.Fail(status, retry_after=retry_after))
    error = fault(servers[name], kind)
    assert (error.fault, error.retry_after_s) == expected
    assert error.detail == str(status)
