"""A caller of the API: completions, models and usage over HTTP."""

import asyncio
import re
from collections.abc import Coroutine, Sequence
from datetime import timedelta
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from wreq import Client, Method, Runtime, exceptions
from wreq.redirect import Policy

from tarazu.api.objects import ChatCompletion, DomainErrorEnvelope, ModelList, PlainErrorEnvelope, UsageObject
from tarazu.backends.http_client import CONNECT_TIMEOUT_S, FAILURES, read_body
from tarazu.cli.errors import CommandError, UsageError
from tarazu.cli.refusals import Failure, refusal
from tarazu.domain.prompt import Message
from tarazu.service.configuration.addresses import API_PATH, base_address_fault
from tarazu.service.configuration.schema import TIMEOUT_S_MAX

ANSWER_TIMEOUT_S = TIMEOUT_S_MAX + 30
"""Above the longest time-out that a model may have."""
ANSWER_BYTES_MAX = 16 * 1024 * 1024
RETRY_AFTER_DIGITS_MAX = 6
LOOPBACK_HOSTS = frozenset({"127.0.0.1", "::1", "localhost"})
FIRST_ERROR_STATUS = 400

_REASON = re.compile(r'(?:message: |error: |ConnectError\()"([^"]+)"')

AnswerT = TypeVar("AnswerT")
ResultT = TypeVar("ResultT")


class _ChatRequest(Struct, frozen=True, omit_defaults=True):
    messages: tuple[Message, ...]
    model: str | None = None


class ChatClient:
    """Calls the API of one service with one key. Use it as a context manager.

    Ctrl-C ends a call, and the connection with it: what has not been charged by then is not.
    """

    def __init__(self, url: str, key: str) -> None:
        """Make a client for the service at `url`, with or without /api/v1 at its end.

        Raises:
            UsageError: `url` is no address of a service.
        """
        self.url = url.rstrip("/").removesuffix(API_PATH)
        if fault := base_address_fault(self.url, API_PATH):
            raise UsageError(f"--url: {fault}.")
        self._key = key
        # Asynchronous inside, since only a task can be ended by Ctrl-C in the middle of a call.
        self._runner = asyncio.Runner()
        self._client = Client(
            runtime=Runtime(workers=1),
            connect_timeout=timedelta(seconds=CONNECT_TIMEOUT_S),
            timeout=timedelta(seconds=ANSWER_TIMEOUT_S),
            redirect=Policy.none(),  # the key goes to no other host
            user_agent="tarazu",
            no_proxy=urlsplit(self.url).hostname in LOOPBACK_HOSTS,
        )

    def __repr__(self) -> str:
        """Name the service, not the key."""
        return f"ChatClient({self.url})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._client.close()
        self._runner.close()

    def complete(self, messages: Sequence[Message], model: str | None) -> ChatCompletion:
        """Ask for the next turn.

        Raises:
            CommandError: the service refuses, fails, or cannot be reached.
        """
        body = msgspec.json.encode(_ChatRequest(tuple(messages), model))
        return self._call(Method.POST, "/chat/completions", ChatCompletion, body)

    def models(self) -> ModelList:
        """List the models that the key may use.

        Raises:
            CommandError: as above.
        """
        return self._call(Method.GET, "/models", ModelList)

    def usage(self) -> UsageObject:
        """Tell what is used and what is left.

        Raises:
            CommandError: as above.
        """
        return self._call(Method.GET, "/usage", UsageObject)

    def _call(self, method: Method, path: str, kind: type[AnswerT], content: bytes | None = None) -> AnswerT:
        status, retry_after, body = self._run(self._answer(method, path, content))
        try:
            if status < FIRST_ERROR_STATUS:
                return msgspec.json.decode(body, type=kind)
            failure = _failure(status, retry_after, body)
        except msgspec.DecodeError:  # also ValidationError, which is one
            raise CommandError(
                f"{self.url} answers, but not as this API does (HTTP {status}).", "Check the address, --url."
            ) from None
        raise refusal(failure)

    def _run(self, call: Coroutine[Any, Any, ResultT]) -> ResultT:
        try:
            return self._runner.run(call)
        except exceptions.TimeoutError:
            raise CommandError(f"{self.url} does not answer in time.", "Try again later.") from None
        except exceptions.BuilderError:
            raise UsageError(f"--url: {self.url} is no address.") from None
        except FAILURES as error:
            raise CommandError(
                f"{self.url} cannot be reached ({_cause(error)}).",
                "Is the service running? tarazu serve starts it; --url or TARAZU_URL names another address.",
            ) from None

    async def _answer(self, method: Method, path: str, content: bytes | None) -> tuple[int, str | None, bytes]:
        headers = {"authorization": f"Bearer {self._key}"}
        if content is not None:
            headers["content-type"] = "application/json"
        url = f"{self.url}{API_PATH}{path}"
        async with self._client.request(method, url, headers=headers, body=content) as response:
            body = await read_body(response, ANSWER_BYTES_MAX)
            if body is None:
                raise CommandError(
                    f"{self.url} answers with more than {ANSWER_BYTES_MAX:,} bytes.", "Check the address, --url."
                )
            retry_after = response.headers.get("retry-after")
            text = None if retry_after is None else bytes(retry_after).decode("latin-1")
            return response.status.as_int(), text, body


def _failure(status: int, retry_after: str | None, body: bytes) -> Failure:
    is_whole = retry_after is not None and retry_after.isdecimal() and len(retry_after) <= RETRY_AFTER_DIGITS_MAX
    retry_after_s = int(retry_after) if retry_after is not None and is_whole else None
    try:
        error = msgspec.json.decode(body, type=DomainErrorEnvelope).error
    except msgspec.ValidationError:
        message = msgspec.json.decode(body, type=PlainErrorEnvelope).error
        return Failure(status=status, code=None, message=message, retry_after_s=retry_after_s)
    return Failure(
        status=status, code=error.code, message=error.message, details=error.details, retry_after_s=retry_after_s
    )


def _cause(error: BaseException) -> str:
    """Find the innermost reason, which holds no address."""
    reasons = _REASON.findall(str(error))
    return reasons[-1] if reasons else type(error).__name__
