"""Backends that speak OpenAI's chat-completions protocol; the embedded model is one of them."""

import json
from typing import Any, Literal

import msgspec
from msgspec import Struct

from tarazu.backends.http_client import HttpClient
from tarazu.backends.port import BackendError, Fault, Reply
from tarazu.domain.prompt import WHITE_SPACE, ChatRequest, Message

TOKENS_MAX = 100_000_000
"""A token figure above this is nonsense."""
SUCCESS = range(200, 300)


class _Body(Struct, frozen=True, kw_only=True, omit_defaults=True):
    model: str
    messages: tuple[Message, ...]
    stream: Literal[False] = False
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] | None = None
    seed: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None


class _Message(Struct, frozen=True):
    content: str


class _Choice(Struct, frozen=True):
    message: _Message


class _Completion(Struct, frozen=True):
    choices: list[Any]
    usage: Any = None


class OpenAIBackend:
    """One OpenAI-compatible server: `url` up to and with its `/v1`, `model` as that server calls it."""

    def __init__(
        self, http: HttpClient, *, name: str, url: str, model: str, api_key: str | None, direct: bool = False
    ) -> None:
        self.name = name
        self._http = http
        self._url = url.rstrip("/") + "/chat/completions"
        self._model = model
        self._headers = {} if api_key is None else {"authorization": f"Bearer {api_key}"}
        self._direct = direct

    def __repr__(self) -> str:
        return f"<OpenAIBackend {self.name}>"

    async def ask(self, request: ChatRequest, *, timeout_s: float) -> Reply:
        """Get one reply; a 2xx JSON body with a text that is not blank in its first choice, or BackendError."""
        settings = request.settings
        body = _Body(
            model=self._model,
            messages=request.messages,
            temperature=settings.temperature,
            top_p=settings.top_p,
            max_tokens=settings.max_tokens,
            stop=settings.stop,
            seed=settings.seed,
            presence_penalty=settings.presence_penalty,
            frequency_penalty=settings.frequency_penalty,
        )
        answer = await self._http.post_json(
            self._url, body, headers=self._headers, timeout_s=timeout_s, direct=self._direct
        )
        if answer.status not in SUCCESS:
            raise BackendError(Fault.STATUS, str(answer.status))
        return _reply(answer.body)


def _reply(body: bytes) -> Reply:
    try:
        completion = msgspec.convert(_read_json(body), _Completion)
        text = msgspec.convert(completion.choices[0], _Choice).message.content
        text.encode()  # raises on a lone surrogate, which no answer of ours could carry
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise BackendError(Fault.INVALID_REPLY, "no chat completion") from None
    except IndexError:
        raise BackendError(Fault.INVALID_REPLY, "no choice") from None
    if not text.strip(WHITE_SPACE):
        raise BackendError(Fault.INVALID_REPLY, "blank text")
    return Reply(
        text=text,
        prompt_tokens=_tokens(completion.usage, "prompt_tokens"),
        completion_tokens=_tokens(completion.usage, "completion_tokens"),
    )


def _read_json(body: bytes) -> Any:
    """Read JSON, and leniently where that fails: NaN or a number beyond all bounds in `usage` spoils no reply."""
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError:
        return json.loads(body, parse_int=float)


def _tokens(usage: object, name: str) -> int | None:
    """Take a figure only when it is a sensible one; it moves no money, but it is shown and added up."""
    figure = usage.get(name) if isinstance(usage, dict) else None
    if isinstance(figure, int | float) and not isinstance(figure, bool) and 0 <= figure <= TOKENS_MAX:
        return int(figure) if figure == int(figure) else None
    return None
