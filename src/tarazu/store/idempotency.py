"""Idempotency keys in the books: read under the account's lock, kept with the hold, given their reply by the charge.

A statement is run only when a request of the batch came with a key.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, and_, bindparam, delete, func, select, tuple_, update

from tarazu.domain.bounds import Bounds
from tarazu.domain.credits import Hold, RequestState
from tarazu.domain.idempotency import KEPT_MS, Earlier
from tarazu.store.among import among
from tarazu.store.many_rows import insert_rows
from tarazu.store.operations import KEYS_SWEEP_MAX, End
from tarazu.store.schema import accounts, requests
from tarazu.store.schema import idempotency_keys as kept

Place = tuple[str, str]
"""An account's id, and a key that it sent."""

DROPPED_BYTES = 0
"""What `reply_bytes` says of a reply that was dropped; no reply is empty."""
REPLIES_BYTES_MAX = 16 * 1024 * 1024
"""Replies of so many bytes are read for one batch, or one reply that is larger."""

_PLACE = tuple_(kept.c.account_id, kept.c.key)
_RUNS = and_(requests.c.id == kept.c.request_id, requests.c.period == kept.c.period, kept.c.reply.is_(None))
_FIND = (
    select(
        kept.c.account_id,
        kept.c.key,
        kept.c.request_id,
        kept.c.fingerprint,
        func.length(kept.c.reply),
        kept.c.reply_bytes == DROPPED_BYTES,
        requests.c.deadline_ms,
    )
    .outerjoin(requests, _RUNS)
    .where(_PLACE.in_(bindparam("places", expanding=True)))
    .where(kept.c.created_at_ms > bindparam("kept_since_ms"))
)
_READ_REPLIES = select(kept.c.request_id, kept.c.reply).where(among(kept.c.request_id, "request_ids"))
_IS_OF_END = (
    (kept.c.account_id == bindparam("end_account_id"))
    & (kept.c.key == bindparam("end_key"))
    & (kept.c.request_id == bindparam("end_request_id"))
)
_STORE_REPLY = (
    update(kept)
    .where(_IS_OF_END)
    .values(
        reply=bindparam("new_reply"), reply_from=bindparam("new_reply_from"), reply_bytes=bindparam("new_reply_bytes")
    )
)
_LAST = kept.alias("last")
_FIND_ENDS = select(
    accounts.c.id,
    select(_LAST.c.reply_from + _LAST.c.reply_bytes)
    .where(_LAST.c.account_id == accounts.c.id, _LAST.c.reply_from.is_not(None))
    .order_by(_LAST.c.reply_from.desc())
    .limit(1)
    .scalar_subquery(),
).where(among(accounts.c.id, "account_ids"))
_DROPPED = {"reply": None, "reply_from": None, "reply_bytes": DROPPED_BYTES}
_DROP = (
    update(kept)
    .where(kept.c.account_id == bindparam("of_account_id"), kept.c.reply_from < bindparam("room_from"))
    .values(_DROPPED)
)
_SUM = select(func.coalesce(func.sum(kept.c.reply_bytes), 0)).where(kept.c.reply_from.is_not(None))
_OLDEST = (
    select(kept.c.account_id, kept.c.key, kept.c.reply_bytes)
    .where(kept.c.reply_from.is_not(None))
    .order_by(kept.c.created_at_ms)
    .limit(KEYS_SWEEP_MAX)
    .with_for_update(skip_locked=True)  # a charge or a sweep has it, in this or another process
)
_DROP_OLDEST = update(kept).where(_PLACE.in_(bindparam("places", expanding=True))).values(_DROPPED)
_FREE = delete(kept).where(_IS_OF_END)
_OLD = (
    select(kept.c.account_id, kept.c.key)
    .where(kept.c.created_at_ms <= bindparam("kept_since_ms"))
    .order_by(kept.c.created_at_ms)
    .limit(KEYS_SWEEP_MAX)
    .with_for_update(skip_locked=True)  # another process's sweep, or a request that takes the key anew, has it
    .cte("old")  # evaluated once, so that the bound holds
)
_FORGET = delete(kept).where(_PLACE.in_(select(_OLD.c.account_id, _OLD.c.key)))
_REPLACED = ("fingerprint", "request_id", "period", "created_at_ms", "reply", "reply_from", "reply_bytes")
_TAKE = insert_rows(kept, ("account_id", "key", *_REPLACED), replacing=_REPLACED)


class KeyPage:
    """The keys that one batch works on: read at the start, changed in memory, stored at the end."""

    def __init__(self, connection: Connection, now_ms: int, bounds: Bounds) -> None:
        self._connection = connection
        self._now_ms = now_ms
        self._bounds = bounds
        self._earlier: dict[Place, Earlier] = {}
        self._left: set[Place] = set()
        self._new: list[dict[str, Any]] = []
        self._replies: list[dict[str, Any]] = []
        self._freed: list[dict[str, Any]] = []

    def read(self, places: Sequence[Place]) -> None:
        """Read what has been sent with these keys in the last 24 hours; the accounts are locked.

        Replies are read for the first of them, in their order; the others are left for later.
        """
        if not places:
            return
        values = {"places": places, "kept_since_ms": self._now_ms - KEPT_MS}
        found = {(account_id, key): rest for account_id, key, *rest in self._connection.execute(_FIND, values)}
        replies = self._replies_of([found[place] for place in places if place in found])
        for place, (request_id, fingerprint, length, is_dropped, deadline_ms) in found.items():
            reply = replies.get(request_id)
            if length is not None and reply is None:
                self._left.add(place)
            self._earlier[place] = Earlier(
                request_id=request_id,
                fingerprint=fingerprint,
                reply=reply,
                deadline_ms=deadline_ms,
                is_dropped=bool(is_dropped),
            )

    def _replies_of(self, found: Sequence[Sequence[Any]]) -> dict[str, bytes]:
        request_ids: list[str] = []
        room_bytes = REPLIES_BYTES_MAX
        for request_id, _fingerprint, length, *_ in found:
            if length is not None and (length <= room_bytes or not request_ids):
                request_ids.append(request_id)
                room_bytes -= length
        if not request_ids:
            return {}
        rows = self._connection.execute(_READ_REPLIES, {"request_ids": request_ids})
        return {row[0]: row[1] for row in rows}

    def is_left(self, place: Place) -> bool:
        """Tell whether there is a reply that was left for later."""
        return place in self._left

    def earlier(self, place: Place) -> Earlier | None:
        """Tell what the account has sent with this key before, in this batch or an earlier one."""
        return self._earlier.get(place)

    def take(self, hold: Hold, fingerprint: bytes) -> None:
        """Take the key for a request that is now held."""
        assert hold.idempotency_key is not None
        place = hold.account_id, hold.idempotency_key
        self._earlier[place] = Earlier(
            request_id=hold.request_id, fingerprint=fingerprint, reply=None, deadline_ms=hold.deadline_ms
        )
        self._new.append(
            {
                "account_id": hold.account_id,
                "key": hold.idempotency_key,
                "fingerprint": fingerprint,
                "request_id": hold.request_id,
                "period": hold.period,
                "created_at_ms": hold.created_at_ms,
                "reply": None,
                "reply_from": None,
                "reply_bytes": None,
            }
        )

    def end(self, end: End) -> None:
        """Keep the reply of a charge; free the key of a hold that ended without one."""
        if end.idempotency_key is None:
            return
        place = end.account_id, end.idempotency_key
        row = {
            "end_account_id": end.account_id,
            "end_key": end.idempotency_key,
            "end_request_id": end.request_id,
        }
        earlier = self._earlier.get(place)
        is_its_own = earlier is not None and earlier.request_id == end.request_id
        if end.state is RequestState.CHARGED:
            assert end.reply is not None, "a charge under a key without its reply"
            self._replies.append({**row, "new_reply": end.reply})
            if earlier is not None and is_its_own:
                self._earlier[place] = Earlier(
                    request_id=end.request_id, fingerprint=earlier.fingerprint, reply=end.reply
                )
        else:
            self._freed.append(row)
            if is_its_own:
                del self._earlier[place]

    def store(self) -> None:
        """Write what changed. A key that is taken again takes the place of what was kept longer than 24 hours."""
        if self._replies:
            self._keep_replies()
        if self._freed:
            self._connection.execute(_FREE, self._freed)
        if self._new:
            _TAKE.write(self._connection, self._new)

    def _keep_replies(self) -> None:
        """Put each reply behind those of its account, and drop those that lie too far back; the accounts are locked."""
        account_ids = sorted({row["end_account_id"] for row in self._replies})
        found = self._connection.execute(_FIND_ENDS, {"account_ids": account_ids})
        ends: dict[str, int] = {account_id: end or 0 for account_id, end in found}
        for row in self._replies:
            account_id, length = row["end_account_id"], len(row["new_reply"])
            row.update(new_reply_from=ends[account_id], new_reply_bytes=length)
            ends[account_id] += length
        self._connection.execute(_STORE_REPLY, self._replies)
        room = self._bounds.account_reply_bytes
        if full := [{"of_account_id": id_, "room_from": end - room} for id_, end in ends.items() if end > room]:
            self._connection.execute(_DROP, full)


def kept_reply_bytes(connection: Connection) -> int:
    """Add up what is kept of replies, of all accounts."""
    return int(connection.execute(_SUM).scalar_one())


def drop_oldest_replies(connection: Connection, bytes_max: int) -> int:
    """Drop the oldest replies of all accounts until no more than this is kept, at most KEYS_SWEEP_MAX of them.

    Answer with how many were dropped. It must be a transaction of its own, as `forget_old_keys` must be the last.
    """
    beyond = kept_reply_bytes(connection) - bytes_max
    places: list[Place] = []
    for account_id, key, length in connection.execute(_OLDEST):
        if beyond <= 0:
            break
        places.append((account_id, key))
        beyond -= length
    if places:
        connection.execute(_DROP_OLDEST, {"places": places})
    return len(places)


def forget_old_keys(connection: Connection, now_ms: int) -> None:
    """Delete keys that were kept for their time, of any account.

    It must be a transaction's last statement: it locks rows in no order, and must not wait for more with them.
    """
    connection.execute(_FORGET, {"kept_since_ms": now_ms - KEPT_MS})
