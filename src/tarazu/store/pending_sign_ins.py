"""Who has given the right password and not yet the code, in the books: begun, found, ended."""

from sqlalchemy import Connection, delete, insert, select

from tarazu.domain.calendar import MILLISECONDS_PER_MINUTE
from tarazu.store.owners import Owner, is_of, owner_of, owner_values
from tarazu.store.schema import pending_sign_ins

PENDING_MS = 10 * MILLISECONDS_PER_MINUTE
"""For so long the code may be given."""
PENDING_MAX = 5
"""Of one person at a time."""


def insert_pending(connection: Connection, digest: bytes, owner: Owner, now_ms: int) -> None:
    """Begin to wait for the code of a person whose row is locked; the oldest end beyond PENDING_MAX."""
    newest = (
        select(pending_sign_ins.c.digest)
        .where(is_of(pending_sign_ins, owner))
        .order_by(pending_sign_ins.c.created_at_ms.desc(), pending_sign_ins.c.digest)
        .limit(PENDING_MAX - 1)
    )
    old = delete(pending_sign_ins).where(is_of(pending_sign_ins, owner), pending_sign_ins.c.digest.not_in(newest))
    connection.execute(old)
    values = {"digest": digest, "created_at_ms": now_ms, "expires_at_ms": now_ms + PENDING_MS}
    connection.execute(insert(pending_sign_ins).values(**values, **owner_values(owner)))


def find_pending(connection: Connection, digest: bytes, now_ms: int) -> Owner | None:
    """Tell whose code is waited for, if that has not ended."""
    found = select(pending_sign_ins).where(
        pending_sign_ins.c.digest == digest, pending_sign_ins.c.expires_at_ms > now_ms
    )
    row = connection.execute(found).mappings().one_or_none()
    return None if row is None else owner_of(row)


def end_pending(connection: Connection, owner: Owner) -> None:
    """Wait for no code of a person any more."""
    connection.execute(delete(pending_sign_ins).where(is_of(pending_sign_ins, owner)))
