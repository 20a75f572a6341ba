"""Whose a session or an invitation is: a column for each kind of person, of which one is filled."""

from typing import Any

from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, Table, delete, insert, select

from tarazu.domain.people import PersonKind

_COLUMNS = {PersonKind.HOLDER: "account_id", PersonKind.OPERATOR: "operator_id"}


class Owner(Struct, frozen=True):
    """A person, by kind and id."""

    kind: PersonKind
    id: str


def owner_values(owner: Owner) -> dict[str, Any]:
    """Write an owner as values of a new row."""
    return {column: owner.id if kind is owner.kind else None for kind, column in _COLUMNS.items()}


def owner_of(row: Any) -> Owner:
    """Read the owner of a row, by the names of its columns."""
    return next(Owner(kind, row[column]) for kind, column in _COLUMNS.items() if row[column] is not None)


def is_of(table: Table, owner: Owner) -> ColumnElement[bool]:
    """Take the rows of an owner."""
    return table.c[_COLUMNS[owner.kind]] == owner.id


def make_room(connection: Connection, table: Table, owner: Owner, *, by: ColumnElement[int], most: int) -> None:
    """Take away an owner's rows with the least `by`, so that with one more there are `most` of them."""
    newest = select(table.c.digest).where(is_of(table, owner)).order_by(by.desc(), table.c.digest).limit(most - 1)
    connection.execute(delete(table).where(is_of(table, owner), table.c.digest.not_in(newest)))


def insert_newest(
    connection: Connection, table: Table, digest: bytes, owner: Owner, now_ms: int, *, expires_at_ms: int, most: int
) -> None:
    """Add a row that ends, of a person whose row is locked; those that end first make room beyond `most`."""
    make_room(connection, table, owner, by=table.c.expires_at_ms, most=most)
    values = {"digest": digest, "created_at_ms": now_ms, "expires_at_ms": expires_at_ms}
    connection.execute(insert(table).values(**values, **owner_values(owner)))


def find_owner(connection: Connection, table: Table, digest: bytes, now_ms: int) -> Owner | None:
    """Tell whose the row with this digest is, if that has not ended."""
    found = select(table).where(table.c.digest == digest, table.c.expires_at_ms > now_ms)
    row = connection.execute(found).mappings().one_or_none()
    return None if row is None else owner_of(row)
