"""How fast an account's holder may do what leaves rows in the books for good."""

from collections.abc import Collection

from sqlalchemy import Connection

from tarazu.domain.calendar import MILLISECONDS_PER_MINUTE
from tarazu.service.identifiers import first_act_id
from tarazu.service.provisioning_errors import ConflictError
from tarazu.store.trail import newest_by_holder

HOUR_MS = 60 * MILLISECONDS_PER_MINUTE


def require_pace(
    connection: Connection, account_id: str, names: Collection[str], *, hourly_max: int, now_ms: int
) -> None:
    """Let the holder of an account, which the transaction has locked, do one more of these acts.

    Raises:
        ConflictError: so many were done in the last hour; the message tells how long to wait.
    """
    done_at_ms = done_within_an_hour(connection, account_id, names, limit=hourly_max, now_ms=now_ms)
    if len(done_at_ms) == hourly_max:
        raise ConflictError(
            "This was done {count} times within an hour, and may not be done more often. Minutes to wait: {minutes}.",
            count=hourly_max,
            minutes=-((now_ms - done_at_ms[-1] - HOUR_MS) // MILLISECONDS_PER_MINUTE),
        )


def done_within_an_hour(
    connection: Connection, account_id: str, names: Collection[str], *, limit: int, now_ms: int
) -> list[int]:
    """Tell when an account's holder has done these acts in the last hour, the newest first: at most `limit`."""
    first_id = first_act_id(now_ms - HOUR_MS + 1)
    return newest_by_holder(connection, account_id, names, first_id=first_id, limit=limit)
