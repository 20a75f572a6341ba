"""What the access log tells of a request, noted where it comes to light. Where that log is off, none of it runs."""

import asyncio
from contextvars import ContextVar
from typing import Any

from msgspec import Struct

from tarazu.backends.pool import Pool, PoolError, PoolReply, Tries
from tarazu.domain.admission import Asked, Caller, Decision
from tarazu.domain.calendar import MILLISECONDS_PER_SECOND
from tarazu.domain.credits import Hold
from tarazu.domain.errors import Refusal, Sender
from tarazu.domain.keys import PresentedKey
from tarazu.domain.prompt import ChatRequest
from tarazu.store.ledger import Ledger


class Access(Struct, omit_defaults=True):
    """What has come to light of one request so far. `credits` are those that were charged."""

    completion_id: str | None = None
    account_id: str | None = None
    key_id: str | None = None
    model: str | None = None
    backend: str | None = None
    tries: int | None = None
    credits: int | None = None
    backend_ms: int | None = None

    def is_of(self, sender: Sender) -> None:
        """Take note of who has sent the request."""
        self.account_id, self.key_id = sender.account_id, sender.key_id


current_access: ContextVar[Access] = ContextVar("current_access")
"""Set for each request, before anything else is done for it, where the access log is on."""


class NotingLedger(Ledger):
    """A ledger that takes note of who is calling, what is held, and what is charged."""

    async def admit(self, asked: Asked) -> Decision:
        """Decide on a request as a ledger does."""
        decision = await super().admit(asked)
        access, outcome = current_access.get(), decision.outcome
        if isinstance(outcome, Hold):
            access.completion_id, access.model = outcome.request_id, outcome.model_id
        if decision.caller is not None:
            access.is_of(_sender(decision.caller))
        elif isinstance(outcome, Refusal) and outcome.sender is not None:
            access.is_of(outcome.sender)
        return decision

    async def charge(self, hold: Hold, **figures: Any) -> bool:
        """Charge as a ledger does."""
        charged = await super().charge(hold, **figures)
        if charged:
            current_access.get().credits = hold.credits
        return charged

    async def identify(self, key: PresentedKey) -> Caller | Refusal:
        """Tell who is calling as a ledger does."""
        found = await super().identify(key)
        sender = found.sender if isinstance(found, Refusal) else _sender(found)
        if sender is not None:
            current_access.get().is_of(sender)
        return found


class NotingPool(Pool):
    """A pool that takes note of who has answered, after how many tries, and when."""

    async def ask(self, request: ChatRequest, account_id: str | None = None, asked: Tries | None = None) -> PoolReply:
        """Get a reply as a pool does."""
        access, loop = current_access.get(), asyncio.get_running_loop()
        begin_s = loop.time()
        try:
            reply = await super().ask(request, account_id, asked)
        except PoolError as error:
            access.tries = error.tries
            raise
        finally:
            access.backend_ms = round((loop.time() - begin_s) * MILLISECONDS_PER_SECOND)
        access.tries, access.backend = reply.tries, reply.backend
        return reply


def _sender(caller: Caller) -> Sender:
    return Sender(caller.account.id, caller.key.id)
