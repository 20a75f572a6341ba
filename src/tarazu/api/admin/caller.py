"""Find out whose token a request carries."""

from sqlalchemy import Connection

from tarazu.domain.admin_tokens import AdminToken
from tarazu.domain.keys import ADMIN_TOKEN, parse
from tarazu.store.admin_tokens import find_admin_token


def admin_caller(token: str, connection: Connection, now_ms: int) -> AdminToken | None:
    """Find the token in the books; None where it is malformed, unknown, revoked or expired."""
    presented = parse(token, ADMIN_TOKEN)
    if presented is None:
        return None
    found = find_admin_token(connection, presented.id)
    return found if found is not None and presented.matches(found.digest) and found.is_active(now_ms) else None
