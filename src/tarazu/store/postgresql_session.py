"""Settings of a session with PostgreSQL, and the certainty that it is one session from end to end.

A pooler that gives a connection another session for each transaction, as PgBouncer does by `pool_mode = transaction`,
loses the settings, and mixes up the statements that are prepared.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import psycopg

from tarazu.store.availability import BooksUnavailableError

NO_SESSION = (
    "The database is reached through a pooler that gives a connection another session for each transaction. "
    "The books need sessions of their own: set pool_mode = session in PgBouncer, or name the server itself in the URL."
)
POOLING_MODE = "pooling mode"
"""Stands in what PgBouncer says where its `pool_mode = statement` lets no transaction begin."""

ROUNDS = 10
"""So often two connections in turn are asked who serves them. Without sessions the first round tells; where others use
the pooler at the same time, it may be that only a later one does."""


def begin_session(
    connection: psycopg.Connection[Any],
    settings: Mapping[str, str],
    connect_again: Callable[[], psycopg.Connection[Any]],
) -> None:
    """Set a new connection's settings, and see that its next transactions find them, in the same session.

    They are set by statements: poolers refuse or ignore them as parameters of the start.

    Raises:
        BooksUnavailableError: there is no session that keeps them.
    """
    try:
        with connection.transaction():
            session = _row(connection, _statement("set_config('{}', '{}', false)", settings))
        _require_same(connection, session, settings)
        if connection.info.backend_pid != session[0]:  # what the server calls itself; a pooler has a word of its own
            with (
                suppress(psycopg.OperationalError),
                connect_again() as other,
            ):  # where no more are let in, none is asked
                for _ in range(ROUNDS):
                    with other.transaction():
                        process = _row(other, "SELECT pg_backend_pid()")
                    if process[0] == session[0]:  # which is there for the first connection alone
                        raise BooksUnavailableError(NO_SESSION)
                    _require_same(connection, session, settings)
    except psycopg.errors.ProtocolViolation as error:
        if POOLING_MODE not in str(error):  # as where the server behind the pooler is away
            raise
        raise BooksUnavailableError(NO_SESSION) from None


def _require_same(connection: psycopg.Connection[Any], session: tuple[Any, ...], settings: Mapping[str, str]) -> None:
    with connection.transaction():
        found = _row(connection, _statement("current_setting('{}')", settings))
    if found != session:
        raise BooksUnavailableError(NO_SESSION)


def _statement(call: str, settings: Mapping[str, str]) -> str:
    return ", ".join(["SELECT pg_backend_pid()", *(call.format(*setting) for setting in settings.items())])


def _row(connection: psycopg.Connection[Any], statement: str) -> tuple[Any, ...]:
    row: tuple[Any, ...] | None = connection.execute(statement.encode()).fetchone()
    assert row is not None
    return row
