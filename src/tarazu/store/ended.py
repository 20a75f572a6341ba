"""Take away what has ended: what is kept for a while of signing in, and of requests that were refused."""

from typing import Any

from sqlalchemy import Column, Connection, Delete, bindparam, delete, select

from tarazu.store.schema import (
    devices,
    invitations,
    pending_sign_ins,
    refused_requests,
    sessions,
    sign_in_failures,
)

ENDED_MAX = 1_000
"""Rows of each table that one transaction takes away."""


def take_ended_away(connection: Connection, now_ms: int) -> int:
    """Delete such rows, at most ENDED_MAX of each table; tell how many they were in the table with the most."""
    return max(connection.execute(statement, {"now_ms": now_ms}).rowcount for statement in _STATEMENTS)


def _ended(key: Column[Any], end: Column[Any]) -> Delete:
    """Delete by key what has ended. Rows that another process is taking away are left to it, so that nobody waits."""
    old = select(key).where(end <= bindparam("now_ms")).limit(ENDED_MAX).with_for_update(skip_locked=True)
    return delete(key.table).where(key.in_(old))


_STATEMENTS = (
    _ended(sessions.c.digest, sessions.c.expires_at_ms),
    _ended(invitations.c.digest, invitations.c.expires_at_ms),
    _ended(devices.c.digest, devices.c.expires_at_ms),
    _ended(pending_sign_ins.c.digest, pending_sign_ins.c.expires_at_ms),
    _ended(sign_in_failures.c.subject, sign_in_failures.c.until_ms),
    _ended(refused_requests.c.id, refused_requests.c.expires_at_ms),
)
