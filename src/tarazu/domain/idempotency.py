"""Idempotency keys: the same key with the same body gets the first reply again, and is charged once. Pure."""

from hashlib import sha256

from msgspec import Struct

from tarazu.domain.errors import Error, Refusal

KEPT_MS = 24 * 60 * 60 * 1_000
"""How long a key is kept, from its first request on."""
KEY_CHARACTERS_MAX = 255
RUNNING_RETRY_AFTER_S = 1
DROPPED = (
    "The request with this Idempotency-Key was answered and charged once; its reply is not kept any more, since newer "
    "ones fill the account's room. Send it with another key, to be answered and charged anew."
)


class Idempotency(Struct, frozen=True):
    """The key that came with a request, and the SHA-256 of the body that it came with."""

    key: str
    fingerprint: bytes


class Earlier(Struct, frozen=True, kw_only=True):
    """The request that the account sent this key with before.

    Without a reply it is still running, and its hold may be swept after `deadline_ms`; or it has been charged, and its
    reply was dropped since the account keeps no more.
    """

    request_id: str
    fingerprint: bytes
    reply: bytes | None
    deadline_ms: int | None = None
    is_dropped: bool = False


class Replay(Struct, frozen=True):
    """The stored reply of an earlier request, to be answered again and not to be charged again."""

    reply: bytes


def idempotency_of(key: str, body: bytes) -> Idempotency:
    """Tie a key to the body that it was sent with; the caller has seen that an index can hold the key."""
    assert 1 <= len(key) <= KEY_CHARACTERS_MAX
    return Idempotency(key, sha256(body).digest())


def answer_from(earlier: Earlier, idempotency: Idempotency, retry_after_s: int) -> Replay | Refusal:
    """Answer a request whose key is taken; `retry_after_s` is for one that comes while the first is running."""
    if earlier.fingerprint != idempotency.fingerprint:
        return Refusal(error=Error.IDEMPOTENCY_MISMATCH)
    if earlier.is_dropped:
        return Refusal(error=Error.IDEMPOTENCY_MISMATCH, message=DROPPED)
    if earlier.reply is None:
        return Refusal(error=Error.IDEMPOTENCY_CONFLICT, retry_after_s=retry_after_s)
    return Replay(earlier.reply)
