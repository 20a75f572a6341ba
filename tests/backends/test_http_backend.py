"""Servers of every kind over real HTTP: where each is asked, with what, and how a try ends."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tarazu.backends.http_backend import HttpBackend
from tarazu.backends.http_client import HttpClient
from tarazu.backends.kinds import KINDS
from tarazu.backends.kinds.anthropic import MAX_TOKENS_DEFAULT, VERSION
from tarazu.backends.port import BackendError, Fault
from tarazu.backends.secrets import Secrets
from tarazu.domain.catalogue import BackendSpec
from tarazu.domain.prompt import ChatRequest
from tests.support.backend import Received, ScriptedBackend, answers
from tests.support.dialects import ANSWERS, PATHS, anthropic_answer, ask, asked, gemini_answer, openai_answer
from tests.support.values import Clock

KEY = "sk-5eCr3t"
ALL_SETTINGS: dict[str, Any] = {
    "temperature": 0.5,
    "top_p": 0.9,
    "max_tokens": 100,
    "stop": ("END", "STOP"),
    "seed": 7,
    "presence_penalty": 0.1,
    "frequency_penalty": -0.1,
}
BETWEEN_CLIENT_AND_SERVER = {"accept", "accept-encoding", "content-length", "content-type", "host", "user-agent"}
"""The headers that every call carries; test_http_client.py has them."""


@pytest.fixture
def backend() -> Iterator[ScriptedBackend]:
    """A model server."""
    with ScriptedBackend() as backend:
        yield backend


def sent(
    backend: ScriptedBackend,
    kind: str,
    request: ChatRequest | None = None,
    *,
    secrets: Secrets | None = None,
    **settings: Any,
) -> Received:
    """Ask a good server of this kind, and tell what reached it."""
    backend.behaviour = answers(json.dumps(ANSWERS[kind]).encode())
    backend.received.clear()
    reply = ask(BackendSpec(kind=kind, url=f"{backend.root}/base", **settings), request, secrets)
    assert reply.text == "Hello there."
    (received,) = backend.received
    return received


def body(backend: ScriptedBackend, kind: str, *messages: tuple[str, str], **settings: Any) -> dict[str, Any]:
    """Ask with these messages and settings, and tell the body that reached the server."""
    return sent(backend, kind, asked(*messages, **settings)).body


@pytest.mark.parametrize(
    ("kind", "headers"),
    [
        ("openai", {"authorization": f"Bearer {KEY}"}),
        ("anthropic", {"x-api-key": KEY, "anthropic-version": VERSION}),
        ("gemini", {"x-goog-api-key": KEY}),
    ],
)
def test_each_kind_is_asked_at_its_path_with_its_headers(
    backend: ScriptedBackend, kind: str, headers: dict[str, str]
) -> None:
    """The key goes along in the header of the kind, and no other header tells anything."""
    received = sent(backend, kind, secrets=Secrets(api_key=KEY))
    assert received.path == f"/base{PATHS[kind]}"
    assert {name: value for name, value in received.headers.items() if name not in BETWEEN_CLIENT_AND_SERVER} == headers


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_without_a_key_gets_none(backend: ScriptedBackend, kind: str) -> None:
    """The header is left out, not empty."""
    assert KINDS[kind].key_header.lower() not in sent(backend, kind).headers


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("header", "value"), [("api-key", KEY), ("Authorization", f"Bearer {KEY}")])
def test_the_key_may_have_another_header(backend: ScriptedBackend, kind: str, header: str, value: str) -> None:
    """It stands alone in it, and after the word Bearer in Authorization."""
    received = sent(backend, kind, secrets=Secrets(api_key=KEY), key_header=header)
    assert [name for name, text in received.headers.items() if KEY in text] == [header.lower()]
    assert received.headers[header.lower()] == value


def test_azure_is_asked_as_it_wants(backend: ScriptedBackend) -> None:
    """The deployment is part of the url, the version of the API a parameter, and the key stands alone."""
    backend.behaviour = answers(json.dumps(ANSWERS["openai"]).encode())
    spec = BackendSpec(
        kind="openai",
        url=f"{backend.root}/openai/deployments/d",
        query={"api-version": "2024-10-21", "odd": "a b&c"},
        key_header="api-key",
    )
    ask(spec, secrets=Secrets(api_key=KEY))
    (received,) = backend.received
    assert received.path == "/openai/deployments/d/chat/completions?api-version=2024-10-21&odd=a+b%26c"
    assert received.headers["api-key"] == KEY
    assert "authorization" not in received.headers


def test_headers_of_the_operator_go_along(backend: ScriptedBackend) -> None:
    """Those of the file, those of the environment, and one that stands above the kind's own."""
    received = sent(
        backend,
        "anthropic",
        secrets=Secrets(headers={"X-Gateway-Key": "Bearer g"}),
        headers={"HTTP-Referer": "https://shop.example", "Anthropic-Version": "2030-01-01"},
    )
    assert received.headers["http-referer"] == "https://shop.example"
    assert received.headers["x-gateway-key"] == "Bearer g"
    assert received.headers["anthropic-version"] == "2030-01-01"


def test_a_model_in_a_path_is_one_part_of_it(backend: ScriptedBackend) -> None:
    """Its name cannot lead elsewhere."""
    received = sent(backend, "gemini", model="a/../b?c#d")
    assert received.path == "/base/models/a%2F..%2Fb%3Fc%23d:generateContent"


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("openai", {"model": "m", "messages": [{"role": "user", "content": "Hello"}], "stream": False}),
        (
            "anthropic",
            {
                "model": "m",
                "messages": [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}],
                "max_tokens": MAX_TOKENS_DEFAULT,
                "stream": False,
            },
        ),
        ("gemini", {"contents": [{"role": "user", "parts": [{"text": "Hello"}]}]}),
    ],
)
def test_a_request_without_settings_says_no_more_than_it_must(
    backend: ScriptedBackend, kind: str, expected: dict[str, Any]
) -> None:
    """The server's own defaults are in force."""
    assert body(backend, kind) == expected


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("openai", {**ALL_SETTINGS, "stop": ["END", "STOP"]}),
        ("anthropic", {"temperature": 0.5, "max_tokens": 100, "stop_sequences": ["END", "STOP"]}),
        (
            "gemini",
            {
                "temperature": 0.5,
                "topP": 0.9,
                "maxOutputTokens": 100,
                "stopSequences": ["END", "STOP"],
                "seed": 7,
                "presencePenalty": 0.1,
                "frequencyPenalty": -0.1,
            },
        ),
    ],
)
def test_settings_have_the_names_of_the_server(backend: ScriptedBackend, kind: str, expected: dict[str, Any]) -> None:
    """What it has no name for is not sent."""
    told = body(backend, kind, **ALL_SETTINGS)
    told = told.get("generationConfig", told)
    assert {name: value for name, value in told.items() if name not in {"model", "messages", "stream"}} == expected


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"temperature": 2}, {"temperature": 1.0}),
        ({"temperature": 1}, {"temperature": 1}),
        ({"temperature": 0}, {"temperature": 0}),
        ({"top_p": 0.9}, {"top_p": 0.9}),
        ({"temperature": 0, "top_p": 0.9}, {"temperature": 0}),
        ({"max_tokens": 5}, {"max_tokens": 5}),
    ],
)
def test_anthropic_gets_what_it_takes(
    backend: ScriptedBackend, settings: dict[str, Any], expected: dict[str, Any]
) -> None:
    """A temperature of up to 1, and not a `top_p` beside it."""
    told = body(backend, "anthropic", **settings)
    assert {name: told[name] for name in told if name not in {"model", "messages", "stream"}} == {
        "max_tokens": MAX_TOKENS_DEFAULT,
        **expected,
    }


CONVERSATION = (
    ("system", "Be brief."),
    ("user", "Hello"),
    ("assistant", "Hi."),
    ("system", "Be kind."),
    ("user", "So?"),
)


def test_openai_gets_the_messages_as_they_are(backend: ScriptedBackend) -> None:
    """Each in its place."""
    told = body(backend, "openai", *CONVERSATION)["messages"]
    assert [(message["role"], message["content"]) for message in told] == list(CONVERSATION)


def test_anthropic_gets_the_system_messages_apart(backend: ScriptedBackend) -> None:
    """They are one text, in their order."""
    told = body(backend, "anthropic", *CONVERSATION)
    assert told["system"] == "Be brief.\n\nBe kind."
    assert [message["role"] for message in told["messages"]] == ["user", "assistant", "user"]


def test_gemini_gets_the_system_messages_apart(backend: ScriptedBackend) -> None:
    """And the assistant is called the model."""
    told = body(backend, "gemini", *CONVERSATION)
    assert told["systemInstruction"] == {"parts": [{"text": "Be brief.\n\nBe kind."}]}
    assert [content["role"] for content in told["contents"]] == ["user", "model", "user"]


@pytest.mark.parametrize("kind", KINDS)
def test_settings_that_are_omitted_are_not_sent(backend: ScriptedBackend, kind: str) -> None:
    """For servers that refuse them; the others stay."""
    received = sent(backend, kind, asked(**ALL_SETTINGS), omit=("temperature", "stop"))
    told = received.body.get("generationConfig", received.body)
    names = KINDS[kind].names
    assert names["temperature"] not in told
    assert names["stop"] not in told
    assert told[names["top_p"]] == 0.9
    assert told[names["max_tokens"]] == 100


def test_settings_may_have_other_names(backend: ScriptedBackend) -> None:
    """OpenAI's newer models and Mistral call some of them otherwise."""
    rename = {"max_tokens": "max_completion_tokens", "seed": "random_seed"}
    told = sent(backend, "openai", asked(**ALL_SETTINGS), rename=rename).body
    assert (told["max_completion_tokens"], told["random_seed"]) == (100, 7)
    assert not {"max_tokens", "seed"} & set(told)


def test_no_new_name_takes_the_place_of_the_messages(backend: ScriptedBackend) -> None:
    """What a request consists of stands above its settings."""
    told = sent(backend, "openai", asked(seed=7), rename={"seed": "messages"}).body
    assert told["messages"] == [{"role": "user", "content": "Hello"}]


@pytest.mark.parametrize("kind", KINDS)
def test_a_status_is_a_fault_with_its_rest(backend: ScriptedBackend, kind: str) -> None:
    """A busy server's Retry-After arrives."""
    backend.behaviour = answers(b"{}", status=429, retry_after="7")
    with pytest.raises(BackendError) as caught:
        ask(BackendSpec(kind=kind, url=backend.root))
    assert (caught.value.fault, caught.value.detail, caught.value.retry_after_s) == (Fault.BUSY, "429", 7)


STOPPED = {
    "openai": openai_answer("", finish_reason="stop"),
    "anthropic": {**anthropic_answer(stop_reason="stop_sequence"), "content": []},
    "gemini": gemini_answer({"text": ""}, finish_reason="STOP"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("stop", "omit", "fault"),
    [
        (("a", "e", "i", "o", "u"), (), Fault.REQUEST_REFUSED),
        (("a",), ("stop",), Fault.INVALID_REPLY),
        (None, (), Fault.INVALID_REPLY),
    ],
)
def test_a_stop_that_leaves_no_text_is_the_requests_fault(
    backend: ScriptedBackend, kind: str, stop: tuple[str, ...] | None, omit: tuple[str, ...], fault: Fault
) -> None:
    """A caller who stops a reply at its first letter does not make a backend look ill; where none was sent, it is."""
    backend.behaviour = answers(json.dumps(STOPPED[kind]).encode())
    with pytest.raises(BackendError) as caught:
        ask(BackendSpec(kind=kind, url=backend.root, omit=omit), asked(stop=stop))
    assert caught.value.fault is fault


@pytest.mark.parametrize("kind", KINDS)
def test_a_blank_text_that_ended_otherwise_is_the_backends_fault(backend: ScriptedBackend, kind: str) -> None:
    """Whatever `stop` was sent."""
    answer = json.dumps(STOPPED[kind]).replace("stop_sequence", "error").replace('"stop"', '"error"')
    backend.behaviour = answers(answer.replace('"STOP"', '"OTHER"').encode())
    with pytest.raises(BackendError) as caught:
        ask(BackendSpec(kind=kind, url=backend.root), asked(stop=("a",)))
    assert caught.value.fault is Fault.INVALID_REPLY


def test_a_date_to_retry_after_counts_from_now(backend: ScriptedBackend) -> None:
    """One that is long past asks for no rest."""
    backend.behaviour = answers(b"{}", status=503, retry_after="Mon, 21 Sep 1998 14:13:50 GMT")
    with pytest.raises(BackendError) as caught:
        ask(BackendSpec(kind="openai", url=backend.root))
    assert (caught.value.fault, caught.value.retry_after_s) == (Fault.BUSY, 0)


@pytest.mark.parametrize("kind", KINDS)
def test_no_secret_is_in_a_representation(kind: str) -> None:
    """Whatever is logged of a backend."""
    http = HttpClient()
    secrets = Secrets(api_key=KEY, headers={"x": KEY})
    backend = HttpBackend(
        http, BackendSpec(kind=kind, url="http://x", model="m"), Clock(), name="test#1", secrets=secrets
    )
    http.close()
    assert repr(backend) == f"<HttpBackend test#1, {kind}>"
    assert KEY not in repr(secrets)
