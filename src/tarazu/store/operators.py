"""Operators in the books: make, find, change."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, select, update
from sqlalchemy.exc import IntegrityError

from tarazu.domain.people import Operator, OperatorStatus
from tarazu.store.schema import operators
from tarazu.store.upsert import insert_into

_COLUMNS = (
    operators.c.id,
    operators.c.email,
    operators.c.name,
    operators.c.status,
    operators.c.password.is_not(None),
    operators.c.language,
    operators.c.created_at_ms,
)
_SELECT = select(*_COLUMNS)


def insert_operator(connection: Connection, operator: Operator) -> bool:
    """Add an operator without a password, whose id must be new; False where another one has the email."""
    new = insert_into(connection, operators).values(
        id=operator.id,
        email=operator.email,
        name=operator.name,
        status=operator.status.value,
        language=operator.language,
        created_at_ms=operator.created_at_ms,
    )
    inserted = new.on_conflict_do_nothing(index_elements=[operators.c.email]).returning(operators.c.id)
    return connection.execute(inserted).first() is not None


def find_operator(connection: Connection, operator_id: str) -> Operator | None:
    """Read one operator."""
    return _one(connection.execute(_SELECT.where(operators.c.id == operator_id)).one_or_none())


def lock_operator(connection: Connection, operator_id: str) -> Operator | None:
    """Read one operator, whom nobody else changes until the transaction ends."""
    return _one(connection.execute(_SELECT.where(operators.c.id == operator_id).with_for_update()).one_or_none())


def find_operator_by_email(connection: Connection, email: str) -> Operator | None:
    """Read the operator with this email."""
    return _one(connection.execute(_SELECT.where(operators.c.email == email)).one_or_none())


def list_operators(connection: Connection) -> list[Operator]:
    """Read all operators, oldest first."""
    rows = connection.execute(_SELECT.order_by(operators.c.created_at_ms, operators.c.id))
    return [_operator_of(row) for row in rows]


def has_operators(connection: Connection) -> bool:
    """Tell whether there is any."""
    return connection.execute(select(operators.c.id).limit(1)).first() is not None


def operator_password(connection: Connection, operator_id: str) -> str | None:
    """Read the hash of an operator's password; None where there is none yet."""
    query = select(operators.c.password).where(operators.c.id == operator_id)
    return connection.execute(query).scalar_one_or_none()


def update_operator(connection: Connection, operator_id: str, **values: str | OperatorStatus | None) -> None:
    """Set columns of an operator: email, status, password (a hash), name or language."""
    connection.execute(update(operators).where(operators.c.id == operator_id).values(**values))


def set_operator_email(connection: Connection, operator_id: str, email: str) -> bool:
    """Set the email; False where another operator has it, and nothing is changed."""
    try:
        with connection.begin_nested():
            update_operator(connection, operator_id, email=email)
    except IntegrityError:
        return False
    return True


def _one(row: Sequence[Any] | None) -> Operator | None:
    return None if row is None else _operator_of(row)


def _operator_of(row: Sequence[Any]) -> Operator:
    id_, email, name, status, has_password, language, created_at_ms = row
    return Operator(
        id=id_,
        email=email,
        name=name,
        status=OperatorStatus(status),
        has_password=bool(has_password),
        language=language,
        created_at_ms=created_at_ms,
    )
