"""Find out whose token a request carries."""

from sqlalchemy import Connection

from tarazu.domain.admin_tokens import AdminToken
from tarazu.domain.keys import PresentedKey
from tarazu.store.admin_tokens import find_admin_token


def admin_caller(presented: PresentedKey, connection: Connection, now_ms: int) -> AdminToken | None:
    """Find the token in the books; None where it is unknown, revoked or expired."""
    found = find_admin_token(connection, presented.id)
    return found if found is not None and presented.matches(found.digest) and found.is_active(now_ms) else None
