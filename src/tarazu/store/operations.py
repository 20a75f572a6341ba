"""What the ledger is asked to do. One operation is one line in a batch; a batch is one transaction."""

from collections.abc import Callable
from typing import Any, Literal

from msgspec import Struct
from sqlalchemy import Connection

from tarazu.domain.admission import Asked
from tarazu.domain.credits import Reason, RequestState
from tarazu.domain.keys import PresentedKey


class Admit(Struct, frozen=True):
    """Decide on one request and store what the decision changes. Answered with a `Decision`, or with `Later`."""

    asked: Asked


class Identify(Struct, frozen=True):
    """Tell who is calling, without a place in the windows. Answered with a `Caller` or a `Refusal`."""

    key: PresentedKey


class End(Struct, frozen=True, kw_only=True):
    """End a hold as a charge or a release. Answered with whether it has ended so: False changes nothing.

    A charge that is asked for again is answered True again: whoever does not know whether the commit of the first went
    through may ask. Only the request's own service charges it.

    `tries` counts the backends that were asked; the tokens are those of the reply, 0 without one. A charge stores
    `reply` under the request's idempotency key; any other end frees the key.

    A release with a `reason` gives the credits back only as often in an hour as the catalogue says; beyond that it
    spends them.
    """

    request_id: str
    account_id: str
    period: str
    state: Literal[RequestState.CHARGED, RequestState.RELEASED, RequestState.SWEPT]
    tries: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    idempotency_key: str | None = None
    reply: bytes | None = None
    reason: Reason | None = None


class Sweep(Struct, frozen=True):
    """End the holds whose deadline has passed, at most SWEEP_MAX. Answered with how many there were.

    Idempotency keys whose time is over go too, at most KEYS_SWEEP_MAX.
    """


class Work(Struct, frozen=True):
    """Do anything else to the books: `function(connection, now_ms)`. Answered with what it returns.

    What it raises undoes only its own changes. It is called again when another operation breaks the batch, so it
    must do nothing outside the database. Where it only reads, it takes no lock.
    """

    function: Callable[[Connection, int], Any]
    only_reads: bool = False


class Later(Struct, frozen=True):
    """The answer to an admission that is to come again in the next batch: this one has no room for its reply."""


Operation = Admit | Identify | End | Sweep | Work

SWEEP_MAX = 500
KEYS_SWEEP_MAX = 2_000


def needs_disk(operation: Operation) -> bool:
    """Tell whether the operation must be on disk before it is answered.

    A hold or a release that a power cut undoes costs nobody anything: nothing was delivered for it, and a hold
    that comes back is swept.
    """
    if isinstance(operation, Work):
        return not operation.only_reads
    return isinstance(operation, End) and operation.state is RequestState.CHARGED


def only_reads(operation: Operation) -> bool:
    """Tell whether the operation changes nothing in the books."""
    return isinstance(operation, Identify) or (isinstance(operation, Work) and operation.only_reads)
