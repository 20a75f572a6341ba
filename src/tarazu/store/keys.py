"""Keys in the books: add, find, end."""

from sqlalchemy import ColumnElement, Connection, func, insert, or_, select, tuple_, update

from tarazu.domain.accounts import Key
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


def count_live_keys(connection: Connection, account_id: str, now_ms: int) -> int:
    """Count the keys of an account that have not ended."""
    query = select(func.count()).select_from(keys).where(keys.c.account_id == account_id, _is_live(now_ms))
    return int(connection.execute(query).scalar_one())


def newest_live_keys(connection: Connection, account_id: str, now_ms: int, *, limit: int) -> list[Key]:
    """Read an account's keys that have not ended, the newest first, at most `limit`."""
    query = select_keys().where(keys.c.account_id == account_id, _is_live(now_ms))
    query = query.order_by(keys.c.created_at_ms.desc(), keys.c.id.desc()).limit(limit)
    return [key_of(row) for row in connection.execute(query)]


def newest_keys(connection: Connection, account_id: str, *, limit: int, after: str | None = None) -> list[Key]:
    """Read an account's keys, the newest first, at most `limit`; those that come after the key `after`, if given.

    Raises:
        LookupError: the account has no key `after`.
    """
    query = select_keys().where(keys.c.account_id == account_id)
    if after is not None:
        then = connection.execute(
            select(keys.c.created_at_ms).where(keys.c.id == after, keys.c.account_id == account_id)
        ).scalar_one_or_none()
        if then is None:
            raise LookupError(after)
        query = query.where(tuple_(keys.c.created_at_ms, keys.c.id) < (then, after))
    query = query.order_by(keys.c.created_at_ms.desc(), keys.c.id.desc()).limit(limit)
    return [key_of(row) for row in connection.execute(query)]


def revoke_key(connection: Connection, key_id: str, now_ms: int) -> None:
    """End a key now. The first revocation stands."""
    connection.execute(
        update(keys).where(keys.c.id == key_id).where(keys.c.revoked_at_ms.is_(None)).values(revoked_at_ms=now_ms)
    )


def _is_live(now_ms: int) -> ColumnElement[bool]:
    """Say in SQL what `Key.is_active` does."""
    return keys.c.revoked_at_ms.is_(None) & (keys.c.expires_at_ms.is_(None) | (keys.c.expires_at_ms > now_ms))


def set_key_expiry(connection: Connection, key_id: str, expires_at_ms: int) -> None:
    """Let a key end at an instant; an earlier end stands."""
    connection.execute(
        update(keys)
        .where(keys.c.id == key_id)
        .where(or_(keys.c.expires_at_ms.is_(None), keys.c.expires_at_ms > expires_at_ms))
        .values(expires_at_ms=expires_at_ms)
    )
