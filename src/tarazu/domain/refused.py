"""Requests that were refused, summed up, so that their caller finds in the history why a program had no reply. Pure.

Of those that are alike, by account, key, error and model, a row is kept for each SLOT_MS; whoever is refused all the
time fills no books by it.
"""

import re
from collections import Counter
from collections.abc import Iterable
from hashlib import sha256

from msgspec import Struct
from msgspec.structs import replace

from tarazu.domain.calendar import MILLISECONDS_PER_DAY, MILLISECONDS_PER_MINUTE
from tarazu.domain.errors import Error, Sender
from tarazu.domain.keys import base62

TOLD = frozenset(
    {
        Error.UPGRADE_REQUIRED,
        Error.API_CREDITS_EXHAUSTED,
        Error.ACCOUNT_UNAVAILABLE,
        Error.MODEL_NOT_FOUND,
        Error.RATE_LIMIT_EXCEEDED,
    }
)
"""What an account, a key or a limit stands in the way of. Of bad requests the answer itself says all there is."""
SLOT_MS = 10 * MILLISECONDS_PER_MINUTE
KEPT_MS = 30 * MILLISECONDS_PER_DAY
MODELS_MAX = 20
"""Models of an account that are told apart in one slot; of further ones only the error is kept."""
KINDS_MAX = 10_000
"""Kinds of refused requests that a process tells apart at once; further ones are not kept."""
NAME_MAX = 64
ID_PREFIX = "refused_"
ID_DIGITS = 20

_NAME = re.compile(rf"(?!.*[A-Za-z0-9]{{20}})[A-Za-z0-9_][A-Za-z0-9:./_-]{{0,{NAME_MAX - 1}}}", re.ASCII)


class Kind(Struct, frozen=True, kw_only=True):
    """What is alike in requests that were refused. `model_id` is the model as asked for, where that is known."""

    account_id: str
    key_id: str
    error: Error
    model_id: str | None
    slot_ms: int
    """When the slot begins."""

    @property
    def id(self) -> str:
        """Name what is summed up, alike in each process."""
        parts = (self.account_id, self.key_id, self.error.name, self.model_id or "", str(self.slot_ms))
        digest = sha256("\n".join(parts).encode()).digest()
        return ID_PREFIX + base62(int.from_bytes(digest, "big"), ID_DIGITS)


class Refused(Struct, frozen=True, kw_only=True):
    """So many requests of a kind were refused, the first and the last of them at these instants."""

    kind: Kind
    requests: int
    first_at_ms: int
    last_at_ms: int


class RefusedSums:
    """What one process has refused and not yet told the books. Bounded, whatever comes."""

    def __init__(self) -> None:
        self._sums: dict[Kind, Refused] = {}
        self._slot_ms = 0
        self._kinds: set[Kind] = set()
        self._models: Counter[str] = Counter()

    def __repr__(self) -> str:
        return f"<RefusedSums of {len(self._sums)} kinds>"

    def note(self, sender: Sender, error: Error, model: str | None, now_ms: int) -> None:
        """Count a request that was refused by one of the errors TOLD; `model` is the one that it asked for."""
        kind = self._kind(sender, error, None if model is None else model_name(model), now_ms)
        if kind in self._sums:
            refused = self._sums[kind]
            self._sums[kind] = replace(refused, requests=refused.requests + 1, last_at_ms=now_ms)
        elif len(self._sums) < KINDS_MAX:
            self._sums[kind] = Refused(kind=kind, requests=1, first_at_ms=now_ms, last_at_ms=now_ms)

    def take(self) -> list[Refused]:
        """Hand out what has been counted, in the order of the ids, and begin anew."""
        taken, self._sums = self._sums, {}
        return sorted(taken.values(), key=lambda refused: refused.kind.id)

    def put_back(self, taken: Iterable[Refused]) -> None:
        """Count again what could not be told."""
        for refused in taken:
            newer = self._sums.get(refused.kind)
            if newer is not None:
                requests, last_at_ms = refused.requests + newer.requests, newer.last_at_ms
                self._sums[refused.kind] = replace(refused, requests=requests, last_at_ms=last_at_ms)
            elif len(self._sums) < KINDS_MAX:
                self._sums[refused.kind] = refused

    def _kind(self, sender: Sender, error: Error, model_id: str | None, now_ms: int) -> Kind:
        slot_ms = now_ms - now_ms % SLOT_MS
        if slot_ms != self._slot_ms or len(self._kinds) >= KINDS_MAX:
            self._slot_ms = slot_ms
            self._kinds.clear()
            self._models.clear()
        kind = Kind(account_id=sender.account_id, key_id=sender.key_id, error=error, model_id=model_id, slot_ms=slot_ms)
        if model_id is None or kind in self._kinds:
            return kind
        if self._models[sender.account_id] >= MODELS_MAX:
            return replace(kind, model_id=None)
        self._kinds.add(kind)
        self._models[sender.account_id] += 1
        return kind


def model_name(asked: str) -> str | None:
    """Tell what is kept of a model as asked for; None where it may be something else, as a prompt or a key."""
    return asked if _NAME.fullmatch(asked) else None
