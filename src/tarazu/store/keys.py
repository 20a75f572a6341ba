"""Keys in the books: add, find, end."""

from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, case, func, insert, select, tuple_, update

from tarazu.domain.accounts import Key
from tarazu.store.rows import key_of, key_row, select_keys
from tarazu.store.schema import keys
from tarazu.store.searching import any_contains


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


def has_keys(connection: Connection, account_id: str) -> bool:
    """Tell whether an account has ever had a key."""
    return connection.execute(select(keys.c.id).where(keys.c.account_id == account_id).limit(1)).first() is not None


def count_live_keys(connection: Connection, account_id: str, now_ms: int) -> int:
    """Count the keys of an account that have not ended."""
    query = select(func.count()).select_from(keys).where(keys.c.account_id == account_id, _is_live(now_ms))
    return int(connection.execute(query).scalar_one())


def newest_active_keys(connection: Connection, account_id: str, now_ms: int, *, limit: int) -> list[Key]:
    """Read an account's active keys, the newest first, at most `limit`."""
    query = select_keys().where(keys.c.account_id == account_id, _is_live(now_ms), keys.c.paused_at_ms.is_(None))
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


class SoughtKeys(Struct, frozen=True, kw_only=True):
    """Which keys of an account are looked for: those with `text` in their id or name, also ended ones if asked."""

    text: str = ""
    with_ended: bool = False


def count_keys(connection: Connection, account_id: str, sought: SoughtKeys, now_ms: int) -> int:
    """Count the keys that are looked for."""
    query = select(func.count()).select_from(keys).where(*_conditions(connection, account_id, sought, now_ms))
    return int(connection.execute(query).scalar_one())


def keys_found(
    connection: Connection, account_id: str, sought: SoughtKeys, now_ms: int, *, limit: int, offset: int
) -> list[Key]:
    """Read the keys that are looked for, the newest first, at most `limit` behind the first `offset`."""
    query = select_keys().where(*_conditions(connection, account_id, sought, now_ms))
    query = query.order_by(keys.c.created_at_ms.desc(), keys.c.id.desc()).limit(limit).offset(offset)
    return [key_of(row) for row in connection.execute(query)]


def _conditions(connection: Connection, account_id: str, sought: SoughtKeys, now_ms: int) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = [keys.c.account_id == account_id]
    if not sought.with_ended:
        conditions.append(_is_live(now_ms))
    if sought.text:
        conditions.append(any_contains(connection, sought.text, keys.c.name, keys.c.id))
    return conditions


def revoke_key(connection: Connection, key_id: str, now_ms: int) -> None:
    """End a key now. The first revocation stands."""
    connection.execute(
        update(keys).where(keys.c.id == key_id).where(keys.c.revoked_at_ms.is_(None)).values(revoked_at_ms=now_ms)
    )


def set_key_pause(connection: Connection, key_id: str, paused_at_ms: int | None) -> None:
    """Pause a key from this instant on, or let it work again."""
    connection.execute(update(keys).where(keys.c.id == key_id).values(paused_at_ms=paused_at_ms))


def update_key(connection: Connection, key: Key) -> None:
    """Write what can be changed of a key: name, models, limit and end."""
    changed = ("name", "models", "limit_per_minute", "expires_at_ms")
    row = key_row(key)
    connection.execute(update(keys).where(keys.c.id == key.id).values({name: row[name] for name in changed}))


def _is_live(now_ms: int) -> ColumnElement[bool]:
    """Say in SQL which keys have neither been revoked nor expired; they may be paused."""
    return keys.c.revoked_at_ms.is_(None) & (keys.c.expires_at_ms.is_(None) | (keys.c.expires_at_ms > now_ms))


def succeed_key(connection: Connection, key_id: str, successor_id: str, expires_at_ms: int) -> None:
    """Note which key has taken its place, and let it end at an instant; an earlier end stands."""
    end = func.coalesce(keys.c.expires_at_ms, expires_at_ms)
    connection.execute(
        update(keys)
        .where(keys.c.id == key_id)
        .values(successor_id=successor_id, expires_at_ms=case((end < expires_at_ms, end), else_=expires_at_ms))
    )
