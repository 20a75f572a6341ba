"""The admin API's tokens in the books: add, find, end."""

from typing import Any

import msgspec
from msgspec.structs import asdict
from sqlalchemy import Connection, insert, select, update

from tarazu.domain.admin_tokens import AdminToken, Scope
from tarazu.store.schema import admin_tokens as tokens

_SELECT = select(*(tokens.c[name] for name in AdminToken.__struct_fields__))


def insert_admin_token(connection: Connection, token: AdminToken) -> None:
    """Add a token; its id must be new."""
    connection.execute(insert(tokens).values({**asdict(token), "scopes": msgspec.json.encode(token.scopes).decode()}))


def find_admin_token(connection: Connection, token_id: str) -> AdminToken | None:
    """Read one token."""
    row = connection.execute(_SELECT.where(tokens.c.id == token_id)).mappings().one_or_none()
    return None if row is None else _token_of(row)


def list_admin_tokens(connection: Connection) -> list[AdminToken]:
    """Read all tokens, also those that have ended, oldest first."""
    rows = connection.execute(_SELECT.order_by(tokens.c.created_at_ms, tokens.c.id)).mappings()
    return [_token_of(row) for row in rows]


def revoke_admin_token(connection: Connection, token_id: str, now_ms: int) -> bool:
    """End a token now; tell whether it was revoked by this. The first revocation stands."""
    statement = update(tokens).where(tokens.c.id == token_id, tokens.c.revoked_at_ms.is_(None))
    return connection.execute(statement.values(revoked_at_ms=now_ms)).rowcount == 1


def _token_of(row: Any) -> AdminToken:
    return AdminToken(**{**row, "scopes": msgspec.json.decode(row["scopes"], type=tuple[Scope, ...])})
