"""Backends that run beside the service: asked like OpenAI's, but in a stream, and waited for while they start."""

import asyncio
from http import HTTPStatus

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from tarazu.backends.http_client import HttpClient
from tarazu.backends.port import BackendError, Fault, Reply
from tarazu.domain.prompt import WHITE_SPACE, ChatRequest, Message, Settings

START_WAIT_S = 10.0
"""How long a model that is not there yet, or not there again, is waited for: a small one is back in 1 to 2 s."""
START_POLL_S = 0.1
EVENT = b"data: "
LAST_EVENT = b"[DONE]"


class _StreamOptions(Struct, frozen=True):
    include_usage: bool


class _Body(Settings, frozen=True, kw_only=True, omit_defaults=True):
    messages: tuple[Message, ...]
    stream: bool
    stream_options: _StreamOptions


class _Delta(Struct, frozen=True):
    content: str | None = None


class _Choice(Struct, frozen=True):
    delta: _Delta


class _Usage(Struct, frozen=True):
    prompt_tokens: int
    completion_tokens: int


class _Chunk(Struct, frozen=True):
    choices: list[_Choice]
    usage: _Usage | None = None


class LocalBackend:
    """One local model at its process's `url`, up to and with its `/v1`."""

    def __init__(self, http: HttpClient, *, name: str, url: str, api_key: str) -> None:
        self.name = name
        self._http = http
        self._url = url + "/chat/completions"
        self._headers = {"authorization": f"Bearer {api_key}"}

    def __repr__(self) -> str:
        return f"<LocalBackend {self.name}>"

    async def ask(self, request: ChatRequest, *, timeout_s: float) -> Reply:
        """Get one reply within `timeout_s`. A process that is starting, or that died under the request, is asked again.

        Raises:
            BackendError: anything but a valid reply.
        """
        # A stream, since llama.cpp notices only there that its caller has left, and then ends its work.
        body = _Body(
            messages=request.messages,
            stream=True,
            stream_options=_StreamOptions(include_usage=True),
            **asdict(request.settings),
        )
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + timeout_s
        wait_until_s = deadline_s
        while True:
            try:
                return await self._try(body, timeout_s=deadline_s - loop.time())
            except BackendError as error:
                if error.fault is not Fault.UNREACHABLE or loop.time() + START_POLL_S >= wait_until_s:
                    raise
            wait_until_s = min(wait_until_s, loop.time() + START_WAIT_S)
            await asyncio.sleep(START_POLL_S)

    async def _try(self, body: _Body, *, timeout_s: float) -> Reply:
        answer = await self._http.post_json(self._url, body, headers=self._headers, timeout_s=timeout_s, direct=True)
        if answer.status == HTTPStatus.SERVICE_UNAVAILABLE:
            raise BackendError(Fault.UNREACHABLE, "loading")
        if answer.status != HTTPStatus.OK:
            raise BackendError(Fault.STATUS, str(answer.status))
        return _reply(answer.body)


def _reply(body: bytes) -> Reply:
    *events, last = [line.removeprefix(EVENT) for line in body.splitlines() if line.startswith(EVENT)] or [b""]
    if last != LAST_EVENT:
        raise BackendError(Fault.INVALID_REPLY, "cut short")
    try:
        chunks = [msgspec.json.decode(event, type=_Chunk) for event in events]
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise BackendError(Fault.INVALID_REPLY, "no chat completion") from None
    text = "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)
    if not text.strip(WHITE_SPACE):
        raise BackendError(Fault.INVALID_REPLY, "blank text")
    usage = next((chunk.usage for chunk in chunks if chunk.usage), None)
    return Reply(
        text=text,
        prompt_tokens=None if usage is None else usage.prompt_tokens,
        completion_tokens=None if usage is None else usage.completion_tokens,
    )
