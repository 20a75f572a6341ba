"""Who has given the right password and not yet the code, in the books: begun, found, ended."""

from sqlalchemy import Connection, delete, func, select

from tarazu.domain.calendar import MILLISECONDS_PER_MINUTE
from tarazu.store.owners import Owner, find_owner, insert_newest, is_of
from tarazu.store.schema import pending_sign_ins

PENDING_MS = 10 * MILLISECONDS_PER_MINUTE
"""For so long the code may be given."""
PENDING_MAX = 5
"""Of one person at a time."""


def insert_pending(connection: Connection, digest: bytes, owner: Owner, now_ms: int) -> None:
    """Begin to wait for the code of a person whose row is locked; the oldest end beyond PENDING_MAX."""
    ends_ms = now_ms + PENDING_MS
    insert_newest(connection, pending_sign_ins, digest, owner, now_ms, expires_at_ms=ends_ms, most=PENDING_MAX)


def count_pending(connection: Connection, owner: Owner, now_ms: int) -> int:
    """Count the sign-ins of a person that wait for a code."""
    waits = is_of(pending_sign_ins, owner) & (pending_sign_ins.c.expires_at_ms > now_ms)
    return connection.execute(select(func.count()).select_from(pending_sign_ins).where(waits)).scalar_one()


def find_pending(connection: Connection, digest: bytes, now_ms: int) -> Owner | None:
    """Tell whose code is waited for, if that has not ended."""
    return find_owner(connection, pending_sign_ins, digest, now_ms)


def end_pending(connection: Connection, owner: Owner) -> None:
    """Wait for no code of a person any more."""
    connection.execute(delete(pending_sign_ins).where(is_of(pending_sign_ins, owner)))
