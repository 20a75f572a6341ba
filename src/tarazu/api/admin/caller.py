"""Find out whose token a request carries."""

import re
from hashlib import sha256

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, select

from tarazu.domain.admin_scopes import AdminScope
from tarazu.store.schema import admin_tokens

_TOKEN = re.compile(r"tra_([0-9A-Za-z]{12})([0-9A-Za-z]{32})[0-9A-Za-z]{6}")


class AdminCaller(Struct, frozen=True, kw_only=True):
    """An admin token that is let in."""

    id: str
    name: str
    scopes: tuple[AdminScope, ...]


def admin_caller(token: str, connection: Connection, now_ms: int) -> AdminCaller | None:
    """Find the token in the books; None where it is malformed, unknown, revoked or expired."""
    match = _TOKEN.fullmatch(token)
    if match is None:
        return None
    row = connection.execute(select(admin_tokens).where(admin_tokens.c.id == f"tok_{match[1]}")).one_or_none()
    if row is None or row.digest != sha256(match[2].encode()).digest() or row.revoked_at_ms is not None:
        return None
    if row.expires_at_ms is not None and row.expires_at_ms <= now_ms:
        return None
    return AdminCaller(id=row.id, name=row.name, scopes=msgspec.json.decode(row.scopes, type=tuple[AdminScope, ...]))
