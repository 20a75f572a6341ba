"""Bring the schema of the books to the revision that this code works with, beside services that are running on them."""

import time
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from tarazu.store.advisory_locks import MIGRATION_LOCK
from tarazu.store.availability import BooksUnavailableError
from tarazu.store.engine import transaction
from tarazu.store.revision import HEAD, current_revision, refuse_newer

SCRIPTS = Path(__file__).with_name("migrations")
LOCK_TIMEOUT_MS = 500
"""On PostgreSQL whoever comes after a migration that waits for a table waits too, so it does not wait for longer.

It is less than the server's `deadlock_timeout`: where a migration and a service wait for each other, the migration
gives way.
"""
RETRY_PAUSE_S = 1.0
"""Between two tries, for those that have waited."""
PATIENCE_S = 60
"""How long a migration is tried again while others have what it must lock."""
LOCKED = ("55P03", "40P01", "SQLITE_BUSY")
"""A lock that was not got in time, or only at the cost of others: PostgreSQL's `sqlstate`, the `sqlite_errorname`."""


def upgrade(engine: Engine) -> tuple[str | None, str]:
    """Run the migrations that are missing, in one transaction; answer with the revisions before and after.

    Two processes that start together do not both migrate: the transaction takes the write lock first. A lock that is
    not got is given up with all others and tried for again, so that running services go on.

    Raises:
        BooksUnavailableError: the database failed, was made by a newer release or by another program, or was locked
            for PATIENCE_S.
    """
    if engine.dialect.name == "sqlite":
        from tarazu.store.sqlite import make_file  # noqa: PLC0415 - a driver that PostgreSQL does without

        make_file(engine)
    before = current_revision(engine)
    refuse_newer(before)
    if before == HEAD:
        return before, HEAD
    until_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            with transaction(engine) as connection:
                return _upgrade(connection)
        except BooksUnavailableError as error:
            if not _is_locked(error):
                raise
            if time.monotonic() >= until_s:
                raise BooksUnavailableError(
                    f"The database was in use for {PATIENCE_S} s: others kept locked what is to be migrated. "
                    "Nothing was changed. End the transaction that stays open, and try again."
                ) from None
        time.sleep(RETRY_PAUSE_S)


def _upgrade(connection: Connection) -> tuple[str | None, str]:
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS}")
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})")
    before = MigrationContext.configure(connection).get_current_revision()
    if before == HEAD:
        return before, HEAD
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, HEAD)
    return before, HEAD


def _is_locked(error: BooksUnavailableError) -> bool:
    cause = error.__cause__
    of_driver = cause.orig if isinstance(cause, DBAPIError) else None
    return any(getattr(of_driver, name, None) in LOCKED for name in ("sqlstate", "sqlite_errorname"))
