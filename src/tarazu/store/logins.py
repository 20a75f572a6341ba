"""How account holders sign in: one row for an account whose holder has chosen a password."""

from msgspec import Struct
from sqlalchemy import Connection, delete, select, update

from tarazu.store.schema import logins
from tarazu.store.upsert import insert_into, resolving


class HolderLogin(Struct, frozen=True, kw_only=True):
    """The hash of a holder's password, and the language that the holder has picked."""

    password: str
    language: str | None

    def __repr__(self) -> str:
        """Leave the hash out."""
        return f"HolderLogin(language={self.language!r})"


def find_login(connection: Connection, account_id: str) -> HolderLogin | None:
    """Read how an account's holder signs in."""
    query = select(logins.c.password, logins.c.language).where(logins.c.account_id == account_id)
    row = connection.execute(query).one_or_none()
    return None if row is None else HolderLogin(password=row[0], language=row[1])


def set_login_password(connection: Connection, account_id: str, password: str, now_ms: int) -> None:
    """Set the hash of a holder's password, the first one or another."""
    new = insert_into(connection, logins).values(account_id=account_id, password=password, changed_at_ms=now_ms)
    connection.execute(resolving(new, logins, replacing=("password", "changed_at_ms")))


def forget_login(connection: Connection, account_id: str) -> None:
    """Take the password, and the language, of a holder away."""
    connection.execute(delete(logins).where(logins.c.account_id == account_id))


def set_login_language(connection: Connection, account_id: str, language: str) -> None:
    """Set the language of a holder who has a password."""
    connection.execute(update(logins).where(logins.c.account_id == account_id).values(language=language))
