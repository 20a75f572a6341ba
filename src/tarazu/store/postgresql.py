"""Books in PostgreSQL 15 or newer, for more than one machine."""

from functools import partial
from typing import Any, TypeVar

import psycopg
import psycopg.errors
import psycopg.sql
from psycopg import pq
from psycopg.abc import PQGen
from psycopg.conninfo import make_conninfo
from sqlalchemy import Connection, Engine, ExceptionContext, create_engine, event
from sqlalchemy.pool import QueuePool

from tarazu.store.availability import BooksUnavailableError
from tarazu.store.driver_errors import leave_values_out
from tarazu.store.postgresql_session import POOLING_MODE, begin_session
from tarazu.store.postgresql_url import postgresql_parameters, sqlalchemy_url
from tarazu.store.prepared import WITH_FIRST_STATEMENTS
from tarazu.store.transaction_options import READ_ONLY, RELAXED

CONNECTIONS_MAX = 4
"""A process's share of the server's connections: one for the ledger, the others for reading and for operators."""
CONNECT_TIMEOUT_S = 5
STATEMENT_TIMEOUT_MS = 10_000
ANSWER_GRACE_S = 2
"""For so long beyond a statement's own time-out the server is waited for; a server that hangs keeps to no time-out."""
INTERRUPT_INTERVAL_S = 0.1
"""A wait for the server looks so often whether the process was interrupted."""
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
ENCODING = "UTF8"
TEMPORARY = "pg_temp"
"""The schema of a connection's own tables."""

WHOLE_TABLE_WAYS = ("seqscan", "hashjoin", "mergejoin")
"""How PostgreSQL reads whole tables. Only transactions that read alone may: a batch finds its rows by an index.

It would choose these for a table that it believes to be small, and keep to them until it looks again: for the first
minute of a new month's requests. Where there is no other way it takes them still.
"""
SETTINGS = {
    "statement_timeout": str(STATEMENT_TIMEOUT_MS),
    "lock_timeout": str(LOCK_TIMEOUT_MS),
    "idle_in_transaction_session_timeout": str(IDLE_IN_TRANSACTION_TIMEOUT_MS),
    "timezone": "UTC",
    "random_page_cost": str(RANDOM_PAGE_COST),
    **{f"enable_{way}": "off" for way in WHOLE_TABLE_WAYS},
}
"""What each session is held to."""
AWAY_AT_THE_DOOR = (
    "server_login_retry",
    "query_wait_timeout",
    "client_login_timeout",
    "cannot connect to server",
    "starting up",
    "shutting down",
)
"""What PgBouncer refuses a connection with while it has no server: libpq tells no `sqlstate` of it."""
_BEGIN_READING = "; ".join(
    [
        "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
        *(f"SET LOCAL enable_{way} = on" for way in WHOLE_TABLE_WAYS),
    ]
)

T = TypeVar("T")


def postgresql_engine(url: str) -> Engine:
    """Make an engine for the database; every connection is held to the guards.

    Books must survive a crash of the server, so one that runs without fsync or full_page_writes is refused.

    Raises:
        BooksUnavailableError: libpq does not take the URL.
    """
    engine = create_engine(
        sqlalchemy_url(_parameters(url)),
        poolclass=QueuePool,
        pool_size=CONNECTIONS_MAX,
        max_overflow=0,
        pool_timeout=POOL_TIMEOUT_S,
        hide_parameters=True,  # an error's text may reach a log
        connect_args={
            "connect_timeout": CONNECT_TIMEOUT_S,
            "keepalives_idle": CONNECT_TIMEOUT_S,
            "tcp_user_timeout": CONNECT_TIMEOUT_S * 1_000,  # a machine that is gone answers no packet
            "application_name": "tarazu",
            "client_encoding": ENCODING,  # whatever the environment says
        },
    )
    event.listen(engine, "do_connect", _connect)
    event.listen(engine, "connect", _guard)
    event.listen(engine, "begin", _begin)
    event.listen(engine, "handle_error", _leave_values_out)
    return engine


def is_away(url: str) -> bool:
    """Tell whether the server cannot be reached, or lets nobody in yet: a wrong role, password or database does not.

    Raises:
        BooksUnavailableError: libpq does not take the URL.
    """
    target = make_conninfo("", **{"connect_timeout": str(CONNECT_TIMEOUT_S), **_parameters(url)})
    if pq.PGconn.ping(target.encode()) in {pq.Ping.REJECT, pq.Ping.NO_RESPONSE}:
        return True
    # A pooler answers the ping by itself, and may let in whom it has met before; only a question goes to the server.
    try:
        with _Connection.connect(target, autocommit=True) as connection:
            connection.statement_timeout_ms = CONNECT_TIMEOUT_S * 1_000
            return _is_away_behind_pooler(connection)
    except psycopg.errors.ConnectionTimeout:
        return True
    except psycopg.Error as error:
        return any(word in str(error) for word in AWAY_AT_THE_DOOR)


def _is_away_behind_pooler(connection: "_Connection") -> bool:
    try:
        connection.execute("SELECT 1")
    except psycopg.OperationalError as error:
        is_told = isinstance(error, psycopg.errors.ProtocolViolation)
        return error.sqlstate is None or (is_told and POOLING_MODE not in str(error))
    return False


def allow_long_statements(connection: Connection) -> None:
    """Let this connection's statements read for long."""
    with connection.begin():
        connection.exec_driver_sql(f"SET statement_timeout = {LONG_STATEMENT_TIMEOUT_MS}")
        connection.exec_driver_sql(f"SET work_mem = {LONG_STATEMENT_MEMORY_KIB}")
    connection.connection.dbapi_connection.statement_timeout_ms = LONG_STATEMENT_TIMEOUT_MS  # type: ignore[union-attr]  # is ours


def _parameters(url: str) -> dict[str, str]:
    try:
        return postgresql_parameters(url)
    except ValueError as error:
        raise BooksUnavailableError(f"The URL of the database: {error}.") from None


class _Connection(psycopg.Connection[Any]):
    """A connection that ends when the server says nothing for longer than a statement may take.

    The server's own time-outs do not help where its disk, its machine or the way to it hangs: the ledger would too.
    """

    statement_timeout_ms = STATEMENT_TIMEOUT_MS

    def wait(self, gen: PQGen[T], interval: float = INTERRUPT_INTERVAL_S, timeout: float | None = None) -> T:
        """Wait for the server's part in whatever is being done."""
        if timeout is None:
            timeout = self.statement_timeout_ms / 1_000 + ANSWER_GRACE_S
        try:
            return super().wait(gen, interval, timeout)
        except psycopg.errors._WaitTimeout:  # noqa: SLF001 - it has no other name
            self.pgconn.finish()
            raise psycopg.OperationalError("the server does not answer") from None


def _connect(_dialect: object, _record: object, arguments: list[Any], options: dict[str, Any]) -> _Connection:
    """Connect; a database of another encoding is refused before SQLAlchemy asks it anything, which would fail."""
    try:
        connection = _Connection.connect(*arguments, **options)
    except psycopg.ProgrammingError as error:  # a parameter that psycopg itself does not take
        raise BooksUnavailableError(f"The URL of the database: {' '.join(str(error).split())}.") from None
    try:
        _require_encoding(connection)
        begin_session(connection, SETTINGS, partial(_connect_briefly, arguments, options))
    except BaseException:
        connection.close()
        raise
    return connection


def _require_encoding(connection: _Connection) -> None:
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != ENCODING:
        raise BooksUnavailableError(
            f"The database's encoding is {encoding}, which cannot hold every text. "
            f"Make one with ENCODING '{ENCODING}', as docs/postgresql.md shows, and move the books there."
        )


def _connect_briefly(arguments: list[Any], options: dict[str, Any]) -> _Connection:
    connection = _Connection.connect(*arguments, **options)
    connection.statement_timeout_ms = 0  # only ANSWER_GRACE_S is left
    return connection


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
    """Do so with the driver's error and with the one that SQLAlchemy has made of it."""
    original, wrapped = context.original_exception, context.sqlalchemy_exception
    primary = leave_values_out(original)
    if primary is not None and wrapped is not None:
        wrapped.args = (f"({type(original).__name__}) {primary}",)


def _begin(connection: Connection) -> None:
    options = connection.get_execution_options()
    relaxed = options.get(RELAXED) and not options.get(READ_ONLY)
    connection.info[WITH_FIRST_STATEMENTS] = "SET LOCAL synchronous_commit = off" if relaxed else None
    if options.get(READ_ONLY):
        connection.exec_driver_sql(_BEGIN_READING)
