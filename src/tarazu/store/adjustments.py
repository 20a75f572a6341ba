"""Adjustments in the books: corrections of a balance, up or down, each with its reason."""

from msgspec import Struct
from msgspec.structs import asdict
from sqlalchemy import Connection, insert, select

from tarazu.store.accounts import add_to_balance
from tarazu.store.schema import adjustments


class Adjustment(Struct, frozen=True, kw_only=True):
    """Credits added to a balance or, below zero, taken from it. With a `reference` it is done but once."""

    id: str
    account_id: str
    credits: int
    reason: str
    reference: str | None
    made_by: str
    created_at_ms: int


def insert_adjustment(connection: Connection, adjustment: Adjustment) -> None:
    """Record an adjustment and change the balance by it.

    Raises:
        BalanceError: the balance would be below zero or too large; nothing was changed.
    """
    add_to_balance(connection, adjustment.account_id, adjustment.credits)
    connection.execute(insert(adjustments).values(asdict(adjustment)))


def find_adjustment(connection: Connection, reference: str) -> Adjustment | None:
    """Read the adjustment with this reference."""
    columns = [adjustments.c[name] for name in Adjustment.__struct_fields__]
    row = connection.execute(select(*columns).where(adjustments.c.reference == reference)).one_or_none()
    return None if row is None else Adjustment(**row._asdict())
