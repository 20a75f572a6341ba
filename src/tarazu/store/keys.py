"""Keys in the books: add, find, end."""

from sqlalchemy import Connection, insert, or_, update

from tarazu.domain.accounts import Key
from tarazu.store.keysets import rows_on_page
from tarazu.store.rows import key_of, key_row, select_keys
from tarazu.store.schema import keys


def insert_key(connection: Connection, key: Key) -> None:
    """Add a key; its id must be new and its account known."""
    connection.execute(insert(keys).values(key_row(key)))


def find_key(connection: Connection, key_id: str) -> Key | None:
    """Read one key."""
    row = connection.execute(select_keys().where(keys.c.id == key_id)).one_or_none()
    return None if row is None else key_of(row)


def list_keys(connection: Connection, account_id: str) -> list[Key]:
    """Read all keys of an account, also those that have ended, oldest first."""
    query = select_keys().where(keys.c.account_id == account_id).order_by(keys.c.created_at_ms, keys.c.id)
    return [key_of(row) for row in connection.execute(query)]


def keys_on_page(connection: Connection, account_id: str, *, limit: int, after: str | None) -> list[Key]:
    """Read a page of the keys of an account, also those that have ended, oldest first, as `rows_on_page` says.

    Raises:
        LookupError: there is no key `after`.
    """
    query = select_keys().where(keys.c.account_id == account_id)
    return [key_of(row) for row in rows_on_page(connection, query, keys, limit=limit, after=after)]


def revoke_key(connection: Connection, key_id: str, now_ms: int) -> None:
    """End a key now. The first revocation stands."""
    connection.execute(
        update(keys).where(keys.c.id == key_id).where(keys.c.revoked_at_ms.is_(None)).values(revoked_at_ms=now_ms)
    )


def set_key_expiry(connection: Connection, key_id: str, expires_at_ms: int) -> None:
    """Let a key end at an instant; an earlier end stands."""
    connection.execute(
        update(keys)
        .where(keys.c.id == key_id)
        .where(or_(keys.c.expires_at_ms.is_(None), keys.c.expires_at_ms > expires_at_ms))
        .values(expires_at_ms=expires_at_ms)
    )
