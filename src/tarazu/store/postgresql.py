"""Books in PostgreSQL 15 or newer, for more than one machine."""

from typing import Any

import psycopg
import psycopg.sql
from sqlalchemy import URL, Connection, Engine, ExceptionContext, create_engine, event
from sqlalchemy.pool import QueuePool

from tarazu.store.availability import BooksUnavailableError
from tarazu.store.transaction_options import READ_ONLY, RELAXED

CONNECTIONS_MAX = 4
"""A process's share of the server's connections: one for the ledger, the others for reading and for operators."""
CONNECT_TIMEOUT_S = 5
STATEMENT_TIMEOUT_MS = 10_000
LONG_STATEMENT_TIMEOUT_MS = 3_600_000
LONG_STATEMENT_MEMORY_KIB = 65_536
"""Of each sort or hash table; what does not fit goes to the server's disk."""
LOCK_TIMEOUT_MS = 5_000
IDLE_IN_TRANSACTION_TIMEOUT_MS = 10_000
RANDOM_PAGE_COST = 1.1
"""What a batch looks for was read or written a moment ago, and is in memory: an index leads there at little cost.

By PostgreSQL's default of 4, made for turning disks, it would rather read tables of some ten thousand rows whole.
"""
POOL_TIMEOUT_S = 5
LEAST_VERSION = 150_000
SORTS_BY_BYTES = "SELECT 'a' > 'B'"
"""True where texts are not sorted as in a dictionary: the ids that tell a time would not be in its order there."""
TEMPORARY = "pg_temp"
"""The schema of a connection's own tables."""


def postgresql_engine(url: URL) -> Engine:
    """Make an engine for the database; every connection is held to the guards.

    Books must survive a crash of the server, so one that runs without fsync or full_page_writes is refused.
    """
    engine = create_engine(
        url.set(drivername="postgresql+psycopg"),
        poolclass=QueuePool,
        pool_size=CONNECTIONS_MAX,
        max_overflow=0,
        pool_timeout=POOL_TIMEOUT_S,
        hide_parameters=True,  # an error's text may reach a log
        connect_args={
            "connect_timeout": CONNECT_TIMEOUT_S,
            "keepalives_idle": CONNECT_TIMEOUT_S,
            "tcp_user_timeout": STATEMENT_TIMEOUT_MS,
            "options": (
                f"-c statement_timeout={STATEMENT_TIMEOUT_MS} -c lock_timeout={LOCK_TIMEOUT_MS} "
                f"-c idle_in_transaction_session_timeout={IDLE_IN_TRANSACTION_TIMEOUT_MS} -c timezone=UTC "
                f"-c random_page_cost={RANDOM_PAGE_COST}"
            ),
            "application_name": "tarazu",
        },
    )
    event.listen(engine, "connect", _guard)
    event.listen(engine, "begin", _begin)
    event.listen(engine, "handle_error", _leave_values_out)
    return engine


def allow_long_statements(connection: Connection) -> None:
    """Let this connection's statements read for long."""
    with connection.begin():
        connection.exec_driver_sql(f"SET statement_timeout = {LONG_STATEMENT_TIMEOUT_MS}")
        connection.exec_driver_sql(f"SET work_mem = {LONG_STATEMENT_MEMORY_KIB}")


def _guard(connection: Any, _record: object) -> None:
    version = connection.info.server_version
    if version < LEAST_VERSION:
        raise BooksUnavailableError(f"PostgreSQL {version // 10_000} is too old; Tarazu needs 15 or newer.")
    with connection.cursor() as cursor:
        for setting in ("fsync", "full_page_writes"):
            (value,) = cursor.execute(psycopg.sql.SQL("SHOW {}").format(psycopg.sql.Identifier(setting))).fetchone()
            if value != "on":
                raise BooksUnavailableError(
                    f"PostgreSQL runs with {setting} = {value}, so a crash could lose or corrupt the books. "
                    f"Set {setting} = on."
                )
        (value,) = cursor.execute(SORTS_BY_BYTES).fetchone()
        if not value:
            raise BooksUnavailableError(
                "The database sorts texts by the rules of a language. "
                "Make one with LC_COLLATE 'C', as docs/postgresql.md shows, and move the books there."
            )
    connection.rollback()


def _leave_values_out(context: ExceptionContext) -> None:
    """Keep an error's first line alone: the details below it quote the row, and an error's text may reach a log."""
    original, wrapped = context.original_exception, context.sqlalchemy_exception
    if isinstance(original, psycopg.Error) and original.diag.message_primary is not None:
        original.args = (original.diag.message_primary,)
        if wrapped is not None:
            wrapped.args = (f"({type(original).__name__}) {original.diag.message_primary}",)


def _begin(connection: Connection) -> None:
    options = connection.get_execution_options()
    if options.get(READ_ONLY):
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
    elif options.get(RELAXED):
        connection.exec_driver_sql("SET LOCAL synchronous_commit = off")
