"""Find the holds that a sweep gives back: those whose deadline has passed, whoever has made them."""

from sqlalchemy import Connection, bindparam, func, select

from tarazu.domain.credits import RequestState
from tarazu.store.advisory_locks import SWEEP_LOCK
from tarazu.store.operations import SWEEP_MAX, End
from tarazu.store.schema import idempotency_keys, requests

_OVERDUE = (
    select(requests.c.id, requests.c.account_id, requests.c.period, idempotency_keys.c.key)
    .outerjoin(idempotency_keys, idempotency_keys.c.request_id == requests.c.id)
    .where(requests.c.state == RequestState.HELD)
    .where(requests.c.deadline_ms < bindparam("now_ms"))
    .order_by(requests.c.deadline_ms)
    .limit(SWEEP_MAX)
)


def overdue_ends(connection: Connection, now_ms: int) -> list[End]:
    """Make the ends of overdue holds, the oldest first, at most SWEEP_MAX; none while another process is sweeping.

    So processes do not wait for each other to give back the same holds. `SKIP LOCKED` would do that too, but it would
    lock requests before their accounts, against the order that keeps batches from deadlocks.
    """
    if not _has_turn(connection):
        return []
    return [
        End(
            request_id=request_id,
            account_id=account_id,
            period=period,
            state=RequestState.SWEPT,
            idempotency_key=idempotency_key,
        )
        for request_id, account_id, period, idempotency_key in connection.execute(_OVERDUE, {"now_ms": now_ms})
    ]


def _has_turn(connection: Connection) -> bool:
    """Take the turn to sweep until the transaction ends, if nobody has it. On SQLite the write lock is the turn."""
    if connection.dialect.name != "postgresql":
        return True
    return bool(connection.execute(select(func.pg_try_advisory_xact_lock(SWEEP_LOCK))).scalar_one())
