"""References, by which what is sent twice counts once: one namespace over top-ups and adjustments, one of creations."""

from sqlalchemy import Connection, func, select

from tarazu.store.advisory_locks import REFERENCE_LOCKS


def lock_reference(connection: Connection, reference: str) -> None:
    """Let nobody else work on this reference until the transaction ends.

    On SQLite nobody does: the transaction holds the write lock already.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(REFERENCE_LOCKS, func.hashtext(reference))))
