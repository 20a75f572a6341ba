"""The browsers in which people have signed in before, in the books: made known, found, forgotten."""

from sqlalchemy import Connection, delete, insert, select, update

from tarazu.domain.calendar import MILLISECONDS_PER_DAY
from tarazu.store.owners import Owner, is_of, owner_values
from tarazu.store.schema import devices

DEVICE_DAYS = 180
"""So long after its last success a browser is known."""
DEVICES_MAX = 20
"""Of one person at a time."""


def insert_device(connection: Connection, digest: bytes, owner: Owner, now_ms: int) -> None:
    """Make a browser known to a person whose row is locked; the oldest make room beyond DEVICES_MAX."""
    newest = (
        select(devices.c.digest)
        .where(is_of(devices, owner))
        .order_by(devices.c.expires_at_ms.desc(), devices.c.digest)
        .limit(DEVICES_MAX - 1)
    )
    connection.execute(delete(devices).where(is_of(devices, owner), devices.c.digest.not_in(newest)))
    connection.execute(
        insert(devices).values(
            digest=digest, created_at_ms=now_ms, expires_at_ms=_expiry(now_ms), **owner_values(owner)
        )
    )


def is_known_device(connection: Connection, digest: bytes, owner: Owner, now_ms: int) -> bool:
    """Tell whether this browser is known to this person."""
    found = select(devices.c.digest).where(
        devices.c.digest == digest, is_of(devices, owner), devices.c.expires_at_ms > now_ms
    )
    return connection.execute(found).first() is not None


def renew_device(connection: Connection, digest: bytes, now_ms: int) -> None:
    """Let a browser stay known from now on."""
    connection.execute(update(devices).where(devices.c.digest == digest).values(expires_at_ms=_expiry(now_ms)))


def forget_devices(connection: Connection, owner: Owner, *, keep: bytes | None = None) -> None:
    """Forget all browsers of a person, but the one with the digest `keep`."""
    statement = delete(devices).where(is_of(devices, owner))
    if keep is not None:
        statement = statement.where(devices.c.digest != keep)
    connection.execute(statement)


def _expiry(now_ms: int) -> int:
    return now_ms + DEVICE_DAYS * MILLISECONDS_PER_DAY
