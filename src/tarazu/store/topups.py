"""Top-ups in the books: the only way by which money comes in, each with a unique reference."""

from msgspec import Struct
from msgspec.structs import asdict
from sqlalchemy import Connection, insert, select

from tarazu.store.accounts import add_to_balance
from tarazu.store.schema import topups


class Topup(Struct, frozen=True, kw_only=True):
    """Credits added to an account's balance; `reference` is the payment's. `made_by` is None in older rows alone."""

    id: str
    account_id: str
    credits: int
    reference: str
    note: str | None
    made_by: str | None
    created_at_ms: int


def insert_topup(connection: Connection, topup: Topup) -> None:
    """Record a top-up and add it to the balance.

    Raises:
        BalanceError: the balance would be too large; nothing was changed.
    """
    add_to_balance(connection, topup.account_id, topup.credits)
    connection.execute(insert(topups).values(asdict(topup)))


def last_topup(connection: Connection, account_id: str) -> int:
    """Tell the credits of an account's newest top-up; 0: it has none."""
    newest = select(topups.c.credits).where(topups.c.account_id == account_id).order_by(topups.c.id.desc()).limit(1)
    return connection.execute(newest).scalar_one_or_none() or 0


def find_topup(connection: Connection, reference: str) -> Topup | None:
    """Read the top-up with this reference."""
    columns = [topups.c[name] for name in Topup.__struct_fields__]
    row = connection.execute(select(*columns).where(topups.c.reference == reference)).one_or_none()
    return None if row is None else Topup(**row._asdict())
