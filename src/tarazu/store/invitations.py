"""Invitations in the books: at most one for each person, followed once."""

from sqlalchemy import Connection, delete, insert

from tarazu.store.owners import Owner, find_owner, is_of, owner_of, owner_values
from tarazu.store.schema import invitations


def replace_invitation(
    connection: Connection, digest: bytes, owner: Owner, *, created_at_ms: int, expires_at_ms: int
) -> None:
    """Invite a person, whose row must be locked; an older invitation is void from now on."""
    forget_invitation(connection, owner)
    connection.execute(
        insert(invitations).values(
            digest=digest, created_at_ms=created_at_ms, expires_at_ms=expires_at_ms, **owner_values(owner)
        )
    )


def find_invitation(connection: Connection, digest: bytes, now_ms: int) -> Owner | None:
    """Tell who is invited by this digest, if that has not ended."""
    return find_owner(connection, invitations, digest, now_ms)


def take_invitation(connection: Connection, digest: bytes, now_ms: int) -> Owner | None:
    """Use an invitation up, and tell whose it was; None where it has been used or has ended."""
    taken = (
        delete(invitations)
        .where(invitations.c.digest == digest, invitations.c.expires_at_ms > now_ms)
        .returning(invitations.c.account_id, invitations.c.operator_id)
    )
    row = connection.execute(taken).mappings().one_or_none()
    return None if row is None else owner_of(row)


def forget_invitation(connection: Connection, owner: Owner) -> None:
    """Let the invitation of a person, if there is one, be void from now on."""
    connection.execute(delete(invitations).where(is_of(invitations, owner)))
