"""A caller of the API: completions, models and usage over HTTP."""

import asyncio
from collections.abc import Coroutine, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from tarazu.api.objects import ChatCompletion, DomainErrorEnvelope, ModelList, UsageObject
from tarazu.backends.http_client import AddressError, HttpClient
from tarazu.backends.http_connection import HttpError, HttpReply, TooLargeError
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
        self._http = HttpClient()
        self._is_direct = urlsplit(self.url).hostname in LOOPBACK_HOSTS

    def __repr__(self) -> str:
        """Name the service, not the key."""
        return f"ChatClient({self.url})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._runner.run(self._close())
        self._runner.close()

    def complete(self, messages: Sequence[Message], model: str | None) -> ChatCompletion:
        """Ask for the next turn.

        Raises:
            CommandError: the service refuses, fails, or cannot be reached.
        """
        body = msgspec.json.encode(_ChatRequest(tuple(messages), model))
        return self._call("POST", "/chat/completions", ChatCompletion, body)

    def models(self) -> ModelList:
        """List the models that the key may use.

        Raises:
            CommandError: as above.
        """
        return self._call("GET", "/models", ModelList)

    def usage(self) -> UsageObject:
        """Tell what is used and what is left.

        Raises:
            CommandError: as above.
        """
        return self._call("GET", "/usage", UsageObject)

    def _call(self, method: str, path: str, kind: type[AnswerT], content: bytes | None = None) -> AnswerT:
        reply = self._run(self._answer(method, path, content))
        try:
            if reply.status < FIRST_ERROR_STATUS:
                return msgspec.json.decode(reply.body, type=kind)
            failure = _failure(reply.status, reply.retry_after, reply.body)
        except msgspec.DecodeError:  # also ValidationError, which is one
            raise CommandError(
                f"{self.url} answers, but not as this API does (HTTP {reply.status}).", "Check the address, --url."
            ) from None
        raise refusal(failure)

    def _run(self, call: Coroutine[Any, Any, ResultT]) -> ResultT:
        try:
            return self._runner.run(call)
        except TimeoutError:
            raise CommandError(f"{self.url} does not answer in time.", "Try again later.") from None
        except AddressError:
            raise UsageError(f"--url: {self.url} is no address.") from None
        except TooLargeError:
            raise CommandError(
                f"{self.url} answers with more than {ANSWER_BYTES_MAX:,} bytes.", "Check the address, --url."
            ) from None
        except HttpError as error:
            raise CommandError(
                f"{self.url} cannot be reached ({error}).",
                "Is the service running? tarazu serve starts it; --url or TARAZU_URL names another address.",
            ) from None

    async def _answer(self, method: str, path: str, content: bytes | None) -> HttpReply:
        return await self._http.send(
            method,
            f"{self.url}{API_PATH}{path}",
            content,
            headers={"authorization": f"Bearer {self._key}"},
            timeout_s=ANSWER_TIMEOUT_S,
            bytes_max=ANSWER_BYTES_MAX,
            direct=self._is_direct,
        )

    async def _close(self) -> None:
        self._http.close()


def _failure(status: int, retry_after: str | None, body: bytes) -> Failure:
    is_whole = retry_after is not None and retry_after.isdecimal() and len(retry_after) <= RETRY_AFTER_DIGITS_MAX
    retry_after_s = int(retry_after) if retry_after is not None and is_whole else None
    error = msgspec.json.decode(body, type=DomainErrorEnvelope).error
    return Failure(
        status=status, code=error.code, message=error.message, details=error.details, retry_after_s=retry_after_s
    )
