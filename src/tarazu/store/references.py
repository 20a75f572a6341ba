"""References of top-ups and adjustments: one namespace over both, so that what is sent twice counts once."""

from sqlalchemy import Connection, func, select

REFERENCE_LOCKS = 0x7472_7265
"""The first half of PostgreSQL's advisory locks on references; any number does that nobody else uses."""


def lock_reference(connection: Connection, reference: str) -> None:
    """Let nobody else work on this reference until the transaction ends.

    On SQLite nobody does: the transaction holds the write lock already.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(REFERENCE_LOCKS, func.hashtext(reference))))
