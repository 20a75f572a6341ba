"""POST /chat/completions."""

from collections.abc import Callable
from http import HTTPStatus

from starlette.types import Receive, Scope, Send

from tarazu.api.authorization import presented_key
from tarazu.api.body import BodyReader
from tarazu.api.envelope import error_body, error_headers, rate_limit_headers, send_json
from tarazu.api.objects import ChatCompletion, Choice, CompletionMessage, CompletionUsage
from tarazu.api.presence import unless_gone
from tarazu.domain.calendar import MILLISECONDS_PER_SECOND
from tarazu.domain.errors import Refusal
from tarazu.domain.prompt import read_chat_request
from tarazu.service.completion import Answer, Completion, Completions


class ChatEndpoint:
    """The endpoint as an ASGI application: reads, asks the service, and answers, unless the client has left."""

    def __init__(self, completions: Completions, bodies: BodyReader, clock: Callable[[], int]) -> None:
        self._completions = completions
        self._bodies = bodies
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        key = presented_key(scope["headers"])
        if isinstance(key, Refusal):
            await self._send(send, Answer(outcome=key))
            return
        body = await self._bodies.read(scope["headers"], receive)
        if isinstance(body, Refusal):  # what has not been read of it stays unread
            await self._send(send, await self._completions.complete(key, body))
            return
        answer = await unless_gone(receive, self._completions.complete(key, read_chat_request(body)))
        if answer is not None:
            await self._send(send, answer)

    async def _send(self, send: Send, answer: Answer) -> None:
        headers = [] if answer.rate_limit is None else rate_limit_headers(answer.rate_limit, self._clock())
        if isinstance(answer.outcome, Refusal):
            headers += error_headers(answer.outcome)
            await send_json(send, answer.outcome.error.value.status, error_body(answer.outcome), headers)
        else:
            await send_json(send, HTTPStatus.OK, _chat_completion(answer.outcome), headers)


def _chat_completion(completion: Completion) -> ChatCompletion:
    return ChatCompletion(
        id=completion.id,
        created=completion.created_at_ms // MILLISECONDS_PER_SECOND,
        model=completion.model_id,
        choices=(Choice(message=CompletionMessage(content=completion.text)),),
        usage=CompletionUsage(
            prompt_tokens=completion.prompt_tokens,
            completion_tokens=completion.completion_tokens,
            total_tokens=completion.prompt_tokens + completion.completion_tokens,
            credits=completion.credits,
            billing_source=completion.source.value,
        ),
    )
