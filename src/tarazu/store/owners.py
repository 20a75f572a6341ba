"""Whose a session or an invitation is: a column for each kind of person, of which one is filled."""

from typing import Any

from msgspec import Struct
from sqlalchemy import ColumnElement, Table

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
