"""POST /chat/completions."""

from collections.abc import Collection
from http import HTTPStatus

from starlette.types import Receive, Scope, Send

from tarazu.api.authorization import presented_key
from tarazu.api.body import BodyReader
from tarazu.api.envelope import error_body, error_headers, naming_clients, rate_limit_headers, send_json
from tarazu.api.head import CLOSE, HEAD, Head
from tarazu.api.idempotency import read_idempotency
from tarazu.api.objects import ChatCompletion, Choice, CompletionMessage, CompletionUsage
from tarazu.api.presence import unless_gone
from tarazu.api.refused_keys import RefusedKeys
from tarazu.domain.calendar import MILLISECONDS_PER_SECOND, Clock
from tarazu.domain.errors import NOTHING, Error, PassedOver, Refusal
from tarazu.domain.idempotency import Idempotency
from tarazu.domain.prompt import ChatRequest, read_chat_request
from tarazu.service.completion import Answer, Completion, Completions, busy
from tarazu.service.own_connections import Peer

REPLAYED = (b"idempotent-replayed", b"true")
BEFORE_THE_BODY = (Error.INVALID_API_KEY, Error.ACCOUNT_UNAVAILABLE, Error.SYSTEM_STOPPED)
"""Why a body is not read on: its caller is not let in, or there is no room. Nothing is to be decided any more."""
BEFORE_THE_KEY = (Error.INVALID_REQUEST, Error.STREAMING_NOT_SUPPORTED)
"""What is wrong with a body is said before what is wrong with its idempotency key, up to check 11."""


class ChatEndpoint:
    """The endpoint as an ASGI application: reads, asks the service, and answers, unless the client has left.

    `asking` has the peers who wait for a completion, with their requests; whoever is in `unserved` by then gets none.
    `clients_url` is the page about clients.
    """

    def __init__(
        self,
        completions: Completions,
        bodies: BodyReader,
        clock: Clock,
        refused_keys: RefusedKeys,
        asking: dict[Peer, object],
        unserved: Collection[Peer],
        clients_url: str,
    ) -> None:
        self._completions = completions
        self._bodies = bodies
        self._clock = clock
        self._refused_keys = refused_keys
        self._asking = asking
        self._unserved = unserved
        self._clients_url = clients_url

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        head: Head = scope[HEAD]
        key = presented_key(head)
        if isinstance(key, Refusal):
            await self._send(scope, send, Answer(outcome=key), is_early=head.has_body)
            return
        if self._completions.are_full:  # then even to read the body is too much
            await self._send(scope, send, Answer(outcome=busy()), is_early=not head.has_small_body)
            return
        body = await self._bodies.read(head, receive, key)
        if isinstance(body, Refusal) and body.error in BEFORE_THE_BODY:
            await self._send(scope, send, Answer(outcome=body), is_early=head.has_body)
            return
        if isinstance(body, Refusal):  # what has not been read of it stays unread
            await self._send(scope, send, await self._completions.complete(key, body), is_early=head.has_body)
            return
        request, idempotency = _request(head, body)
        peer = tuple(scope["client"])
        self._asking[peer] = scope
        try:
            if self._unserved and peer in self._unserved:
                await self._send(scope, send, Answer(outcome=busy()), is_early=True)
                return
            work = self._completions.complete(key, request, idempotency)
            answer = await unless_gone(receive, work, self._completions.pulse)
            if answer is not None:
                passed_over = request.passed_over
                if answer.is_format_ignored:
                    passed_over = passed_over.and_parameter("response_format")
                await self._send(scope, send, answer, passed_over)
        finally:
            if self._asking.get(peer) is scope:  # and not that of another one from the same port
                del self._asking[peer]

    async def _send(
        self, scope: Scope, send: Send, answer: Answer, passed_over: PassedOver = NOTHING, *, is_early: bool = False
    ) -> None:
        """Send the answer; after one that comes before the body's end the connection is closed."""
        headers = [] if answer.rate_limit is None else rate_limit_headers(answer.rate_limit, self._clock())
        if passed_over is not NOTHING:
            headers += _told(passed_over)
        if isinstance(answer.outcome, Refusal):
            self._refused_keys.note(answer.outcome, scope)
            headers += error_headers(answer.outcome)
            headers += [CLOSE] if is_early else []
            refusal = naming_clients(answer.outcome, self._clients_url)
            await send_json(send, refusal.kind.status, error_body(refusal), headers)
        else:
            headers += [REPLAYED] if answer.is_replay else []
            await send_json(send, HTTPStatus.OK, _chat_completion(answer.outcome), headers)


def _request(head: Head, body: bytes) -> tuple[ChatRequest | Refusal, Idempotency | None]:
    request, idempotency = read_chat_request(body), read_idempotency(head, body)
    if not isinstance(idempotency, Refusal):
        return request, idempotency
    if isinstance(request, Refusal) and request.error in BEFORE_THE_KEY:
        return request, None
    return idempotency, None


def _told(passed_over: PassedOver) -> list[tuple[bytes, bytes]]:
    """Say in headers what of a request is not acted on (decisions, Input)."""
    headers = []
    if passed_over.messages:
        headers.append((b"x-dropped-messages", b"%d" % passed_over.messages))
    if passed_over.parameters:
        headers.append((b"x-ignored-parameters", ", ".join(passed_over.parameters).encode()))
    return headers


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
