"""The life of one completion: admit, ask the model, charge or release."""

import asyncio
import math
import time
from collections import defaultdict
from collections.abc import Mapping

import msgspec
from msgspec import Struct

from tarazu.backends.pool import Pool, PoolError, PoolReply, Tries
from tarazu.domain.admission import Asked
from tarazu.domain.credits import Hold, Reason, Source
from tarazu.domain.errors import Error, Refusal
from tarazu.domain.idempotency import Idempotency, Replay
from tarazu.domain.keys import PresentedKey
from tarazu.domain.prompt import ChatRequest, estimate_tokens
from tarazu.domain.rate_limit import RateLimit
from tarazu.service.identifiers import COMPLETION_PREFIX, current_request
from tarazu.service.pulse import Pulse
from tarazu.service.refused_requests import RefusedRequests
from tarazu.store.availability import BooksUnavailableError
from tarazu.store.ledger import Ledger

BOOKS_RETRY_AFTER_S = 5
BUSY_RETRY_AFTER_S = 1
CHARGE_RETRY_S = 5
"""For so long a charge that has failed is asked for again, once at least; a hold has more time left by then."""
CHARGE_PAUSE_S = 0.25


class Completion(Struct, frozen=True, kw_only=True):
    """A reply that is paid for.

    The books keep it for a request with an idempotency key: members may be added, with a default, and none may go.
    """

    id: str
    created_at_ms: int
    model_id: str
    text: str
    prompt_tokens: int
    completion_tokens: int
    credits: int
    source: Source


class Answer(Struct, frozen=True, kw_only=True):
    """What became of a request; `rate_limit` is None when it did not reach the windows.

    `is_replay` says that the completion is that of an earlier request, and was paid for then. `is_format_ignored`: its
    model could not be asked for the form that was asked for.
    """

    outcome: Completion | Refusal
    rate_limit: RateLimit | None = None
    is_replay: bool = False
    is_format_ignored: bool = False


class Completions:
    """Serves completions, at most `max_in_flight` at once, and at most `max_in_flight_per_account` of one account.

    `pulse` is that of the event loop; `refused` takes note of what is refused.
    """

    def __init__(
        self,
        ledger: Ledger,
        pools: Mapping[str, Pool],
        pulse: Pulse,
        refused: RefusedRequests,
        *,
        max_in_flight: int,
        max_in_flight_per_account: int,
    ) -> None:
        self._ledger = ledger
        self._pools = pools
        self.pulse = pulse
        self._refused = refused
        self._max_in_flight = max_in_flight
        self._max_in_flight_per_account = max_in_flight_per_account
        self._in_flight = 0
        self._in_flight_of: defaultdict[str, int] = defaultdict(int)

    def __repr__(self) -> str:
        return f"<Completions {self._in_flight} of {self._max_in_flight} in flight>"

    @property
    def are_full(self) -> bool:
        """Tell whether the next request would be one too many."""
        return self._in_flight >= self._max_in_flight

    async def account_of(self, key: PresentedKey) -> str | Refusal:
        """Tell whose key it is, by the account's id, or why it is not let in: rows 4 and 5, from fresh rows."""
        try:
            caller = await self._ledger.identify(key)
        except BooksUnavailableError:
            return books_unavailable()
        if isinstance(caller, Refusal):
            self._refused.note(caller, None)
            return caller
        return caller.account.id

    async def complete(
        self, key: PresentedKey, request: ChatRequest | Refusal, idempotency: Idempotency | None = None
    ) -> Answer:
        """Serve one completion. Whatever happens, its hold ends: charged, released, or swept after its deadline."""
        if self.are_full:
            return Answer(outcome=busy())
        self._in_flight += 1
        try:
            return await self._complete(key, request, idempotency)
        except BooksUnavailableError:
            return Answer(outcome=books_unavailable())
        finally:
            self._in_flight -= 1

    async def _complete(
        self, key: PresentedKey, request: ChatRequest | Refusal, idempotency: Idempotency | None
    ) -> Answer:
        request_id = COMPLETION_PREFIX + current_request.get()
        decision = await self._ledger.admit(
            Asked(request_id=request_id, key=key, request=request, idempotency=idempotency)
        )
        outcome = decision.outcome
        if isinstance(outcome, Refusal):
            self._refused.note(outcome, request.model if isinstance(request, ChatRequest) else None)
            return Answer(outcome=outcome, rate_limit=decision.rate_limit)
        assert isinstance(request, ChatRequest)
        if isinstance(outcome, Replay):
            stored = _stored(outcome.reply)
            is_ignored = self._ignores_format(stored.model_id, request)
            return Answer(outcome=stored, rate_limit=decision.rate_limit, is_replay=True, is_format_ignored=is_ignored)
        return Answer(
            outcome=await self._serve_one_of_few(outcome, request),
            rate_limit=decision.rate_limit,
            is_format_ignored=self._ignores_format(outcome.model_id, request),
        )

    def _ignores_format(self, model_id: str, request: ChatRequest) -> bool:
        """Tell whether a form is asked for that the model cannot be asked for, as one that is not on sale any more."""
        if request.settings.response_format is None:
            return False
        pool = self._pools.get(model_id)
        return pool is None or not pool.takes_format

    async def _serve_one_of_few(self, hold: Hold, request: ChatRequest) -> Completion | Refusal:
        """Serve it, unless its account has its share of this process already. Only now is it known whose it is."""
        account_id, of = hold.account_id, self._in_flight_of
        if of[account_id] >= self._max_in_flight_per_account:
            self._ledger.release(hold, tries=0)
            return busy()
        of[account_id] += 1
        try:
            return await self._serve(hold, request)
        finally:
            of[account_id] -= 1
            if not of[account_id]:
                del of[account_id]

    async def _serve(self, hold: Hold, request: ChatRequest) -> Completion | Refusal:
        asked = Tries()
        try:
            pool_reply = await self._pools[hold.model_id].ask(request, hold.account_id, asked)
            completion = _completion(hold, request, pool_reply)
            if self.pulse.is_in_doubt:
                await self.pulse.settle()
            charged = await self._charge(hold, completion, asked.number)
        except PoolError as error:
            self._ledger.release(hold, tries=error.tries, reason=Reason.TIMED_OUT if error.is_late else None)
            return busy() if error.is_ours else Refusal(error=Error.UPSTREAM_ERROR)
        except asyncio.CancelledError:
            # Not awaited: a client that left must not delay it.
            self._ledger.release(hold, tries=asked.number, reason=Reason.ABANDONED if asked.number else None)
            raise
        except BaseException:
            self._ledger.release(hold, tries=asked.number)
            raise
        # A hold that was swept before its charge has given its credits back: no reply for nothing.
        return completion if charged else Refusal(error=Error.UPSTREAM_ERROR)

    async def _charge(self, hold: Hold, completion: Completion, tries: int) -> bool:
        """Charge, and ask again while the books are away.

        A connection that breaks during a commit does not tell whether the commit has happened. Giving up then would
        charge for a reply that is not sent; asked again, the books tell. That counts from the first failure, which
        takes a while where the books hang.

        Raises:
            BooksUnavailableError: the books were away for CHARGE_RETRY_S.
        """
        until_s = math.inf
        while True:
            try:
                return await self._ledger.charge(
                    hold,
                    tries=tries,
                    prompt_tokens=completion.prompt_tokens,
                    completion_tokens=completion.completion_tokens,
                    reply=None if hold.idempotency_key is None else _to_store(completion),
                )
            except BooksUnavailableError:
                until_s = min(until_s, time.monotonic() + CHARGE_RETRY_S)
                if time.monotonic() >= until_s:
                    raise
            await asyncio.sleep(CHARGE_PAUSE_S)


_to_store = msgspec.msgpack.Encoder().encode
_stored = msgspec.msgpack.Decoder(Completion).decode


def busy() -> Refusal:
    """Make the refusal for when one more would be more than this process carries."""
    return Refusal(error=Error.SYSTEM_STOPPED, retry_after_s=BUSY_RETRY_AFTER_S)


def books_unavailable() -> Refusal:
    """Make the refusal for when the database cannot be reached: nothing is served unchecked."""
    return Refusal(error=Error.SYSTEM_STOPPED, retry_after_s=BOOKS_RETRY_AFTER_S)


def _completion(hold: Hold, request: ChatRequest, pool_reply: PoolReply) -> Completion:
    reply = pool_reply.reply
    prompt_tokens, completion_tokens = reply.prompt_tokens, reply.completion_tokens
    if prompt_tokens is None:
        prompt_tokens = estimate_tokens(sum(len(message.content) for message in request.messages))
    if completion_tokens is None:
        completion_tokens = estimate_tokens(len(reply.text))
    return Completion(
        id=hold.request_id,
        created_at_ms=hold.created_at_ms,
        model_id=hold.model_id,
        text=reply.text,
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        credits=hold.credits,
        source=hold.source,
    )
