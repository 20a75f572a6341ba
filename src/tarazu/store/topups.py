"""Top-ups in the books: the only way by which money comes in, each with a unique reference."""

from msgspec import Struct
from sqlalchemy import Connection, insert, select

from tarazu.store.accounts import add_to_balance
from tarazu.store.schema import topups


class Topup(Struct, frozen=True, kw_only=True):
    """Credits added to an account's balance; `reference` is the payment's, unique over all accounts."""

    id: str
    account_id: str
    credits: int
    reference: str
    note: str | None
    created_at_ms: int


def insert_topup(connection: Connection, topup: Topup) -> None:
    """Record a top-up and add it to the balance."""
    connection.execute(
        insert(topups).values(
            id=topup.id,
            account_id=topup.account_id,
            credits=topup.credits,
            reference=topup.reference,
            note=topup.note,
            created_at_ms=topup.created_at_ms,
        )
    )
    add_to_balance(connection, topup.account_id, topup.credits)


def find_topup(connection: Connection, reference: str) -> Topup | None:
    """Read the top-up with this reference."""
    query = select(
        topups.c.id,
        topups.c.account_id,
        topups.c.credits,
        topups.c.reference,
        topups.c.note,
        topups.c.created_at_ms,
    ).where(topups.c.reference == reference)
    row = connection.execute(query).one_or_none()
    return None if row is None else Topup(**row._asdict())
