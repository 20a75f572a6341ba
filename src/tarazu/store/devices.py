"""The browsers in which people have signed in before, in the books: made known, found, forgotten."""

from sqlalchemy import Connection, delete, update

from tarazu.domain.calendar import MILLISECONDS_PER_DAY
from tarazu.store.owners import Owner, find_owner, insert_newest, is_of
from tarazu.store.schema import devices

DEVICE_DAYS = 180
"""So long after its last success a browser is known."""
DEVICES_MAX = 20
"""Of one person at a time."""


def insert_device(connection: Connection, digest: bytes, owner: Owner, now_ms: int) -> None:
    """Make a browser known to a person whose row is locked; the oldest make room beyond DEVICES_MAX."""
    insert_newest(connection, devices, digest, owner, now_ms, expires_at_ms=_expiry(now_ms), most=DEVICES_MAX)


def is_known_device(connection: Connection, digest: bytes, owner: Owner, now_ms: int) -> bool:
    """Tell whether this browser is known to this person."""
    return find_owner(connection, devices, digest, now_ms) == owner


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
