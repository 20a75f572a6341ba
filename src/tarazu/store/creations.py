"""What was created under a reference, so that the same creation sent twice makes one thing."""

from msgspec import Struct
from msgspec.structs import asdict
from sqlalchemy import Connection, insert, select

from tarazu.store.schema import creations


class Creation(Struct, frozen=True, kw_only=True):
    """One creation: `fingerprint` is a digest of what was asked for, `subject` the id of what was made."""

    reference: str
    fingerprint: bytes
    subject: str
    created_at_ms: int


def insert_creation(connection: Connection, creation: Creation) -> None:
    """Record a creation; its reference must be new."""
    connection.execute(insert(creations).values(asdict(creation)))


def find_creation(connection: Connection, reference: str) -> Creation | None:
    """Read the creation with this reference."""
    columns = [creations.c[name] for name in Creation.__struct_fields__]
    row = connection.execute(select(*columns).where(creations.c.reference == reference)).one_or_none()
    return None if row is None else Creation(**row._asdict())
