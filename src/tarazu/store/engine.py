"""Open the database, with the guards that its books need, and work on it in transactions."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine, ExceptionContext, event, make_url
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, ProgrammingError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from tarazu.store.availability import BooksUnavailableError
from tarazu.store.transaction_options import READ_ONLY, RELAXED

NO_RIGHT = "42501"
"""PostgreSQL's `sqlstate` where the role may not do what is asked of it."""
RIGHTS_ADVICE = (
    "Make the role the owner of the database (ALTER DATABASE … OWNER TO …), and of its tables where others made them."
)
ONLY_READABLE = "SQLITE_READONLY"


def open_engine(database_url: str) -> Engine:
    """Make an engine for `sqlite:///FILE`, a file that is there when it is first used, or for `postgresql://…`.

    Raises:
        BooksUnavailableError: the URL, the database or the driver cannot be used.
    """
    scheme, is_url, _ = database_url.partition("://")
    match scheme:
        case _ if not is_url:
            raise BooksUnavailableError("database.url is not a URL; write for example sqlite:///tarazu.db.")
        case "sqlite":
            from tarazu.store.sqlite import sqlite_engine  # noqa: PLC0415 - a driver that PostgreSQL does without

            return sqlite_engine(make_url(database_url))
        case "postgresql":
            from tarazu.store.postgresql import postgresql_engine  # noqa: PLC0415 - a driver that SQLite does without

            return postgresql_engine(database_url)
        case other:
            raise BooksUnavailableError(f"database.url: {other} is not supported; use sqlite:///FILE or postgresql://…")


@contextmanager
def transaction(engine: Engine, *, read_only: bool = False, relaxed: bool = False) -> Iterator[Connection]:
    """Work in one transaction: committed at the end, rolled back on any error.

    Raises:
        BooksUnavailableError: the database failed. The transaction had no effect, unless it failed under the commit:
            then nobody here can tell.
    """
    with books_errors(), engine.connect() as connection:
        connection.execution_options(**{READ_ONLY: read_only, RELAXED: relaxed})
        with connection.begin():
            yield connection


class KeptConnection:
    """A connection for one transaction after another, by one thread at a time.

    To take it from the pool and give it back costs four times what a transaction of nothing does.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._connection: Connection | None = None
        self._is_doubtful = False
        event.listen(engine, "handle_error", self._hear)

    @contextmanager
    def transaction(self, *, read_only: bool = False, relaxed: bool = False) -> Iterator[Connection]:
        """Work in one transaction, as `transaction` does. After one that has failed the pool is asked for another.

        Raises:
            BooksUnavailableError: as there.
        """
        with books_errors():
            if self._is_doubtful:
                self.close()
            connection = self._connection or self._engine.connect()
            self._connection = None
            try:
                connection.execution_options(**{READ_ONLY: read_only, RELAXED: relaxed})
                with connection.begin():
                    yield connection
            except BaseException:
                connection.close()
                raise
            self._connection = connection

    def close(self) -> None:
        """Give the connection back."""
        self._is_doubtful = False
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _hear(self, context: ExceptionContext) -> None:
        """Hear from any user of the engine that the database was away: the pool replaces what it has, and not this."""
        self._is_doubtful = self._is_doubtful or context.is_disconnect


@contextmanager
def books_errors() -> Iterator[None]:
    """Turn the driver's failures to reach, read or write the database into BooksUnavailableError."""
    try:
        yield
    except (IntegrityError, ProgrammingError, DataError) as error:
        if getattr(error.orig, "sqlstate", None) != NO_RIGHT:
            raise  # a broken rule or statement: our fault, not the database's state
        raise BooksUnavailableError(f"The database refuses: {_words(error)}. {RIGHTS_ADVICE}") from error
    except DBAPIError as error:
        if getattr(error.orig, "sqlite_errorname", "").startswith(ONLY_READABLE):
            raise BooksUnavailableError("The database can be read here, but not written.") from error
        # The driver's own words carry no values: "database is locked", "database or disk is full".
        raise BooksUnavailableError(f"The database failed: {_words(error)}.") from error
    except PoolTimeoutError:
        raise BooksUnavailableError("All connections to the database are in use.") from None


def _words(error: DBAPIError) -> str:
    """Write what the driver says on one line."""
    return " ".join(str(error.orig).split()).rstrip(".")
