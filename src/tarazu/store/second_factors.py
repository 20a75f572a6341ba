"""Second factors in the books: one row for each person who has one."""

from sqlalchemy import Connection, delete, select

from tarazu.domain.second_factor import SecondFactor
from tarazu.store.schema import second_factors
from tarazu.store.upsert import insert_into, resolving

_DIGEST_BYTES = 32


def find_second_factor(connection: Connection, person_id: str) -> SecondFactor | None:
    """Read a person's second factor; None: there is none."""
    query = select(second_factors.c.secret, second_factors.c.last_step, second_factors.c.recovery)
    row = connection.execute(query.where(second_factors.c.person_id == person_id)).one_or_none()
    if row is None:
        return None
    secret, last_step, recovery = row
    digests = tuple(recovery[start : start + _DIGEST_BYTES] for start in range(0, len(recovery), _DIGEST_BYTES))
    return SecondFactor(secret=secret, last_step=last_step, recovery=digests)


def has_second_factor(connection: Connection, person_id: str) -> bool:
    """Tell whether a person has one."""
    found = select(second_factors.c.person_id).where(second_factors.c.person_id == person_id)
    return connection.execute(found).first() is not None


def set_second_factor(connection: Connection, person_id: str, factor: SecondFactor, now_ms: int) -> None:
    """Write the second factor of a person whose row is locked, the first or another."""
    new = insert_into(connection, second_factors).values(
        person_id=person_id,
        secret=factor.secret,
        last_step=factor.last_step,
        recovery=b"".join(factor.recovery),
        created_at_ms=now_ms,
    )
    connection.execute(resolving(new, second_factors, replacing=("secret", "last_step", "recovery")))


def forget_second_factor(connection: Connection, person_id: str) -> bool:
    """Take a person's second factor away; tell whether there was one."""
    statement = delete(second_factors).where(second_factors.c.person_id == person_id)
    return connection.execute(statement).rowcount > 0
