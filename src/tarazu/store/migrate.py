"""Bring the schema of the books to the revision that this code works with."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine

from tarazu.store.availability import BooksUnavailableError
from tarazu.store.engine import transaction
from tarazu.store.revision import HEAD

MIGRATION_LOCK = 0x7472_617A
"""The number of PostgreSQL's advisory lock that whoever migrates holds; any number does that nobody else uses."""
SCRIPTS = Path(__file__).with_name("migrations")


def upgrade(engine: Engine) -> tuple[str | None, str]:
    """Run the migrations that are missing, in one transaction; answer with the revisions before and after.

    Two processes that start together do not both migrate: the transaction takes the write lock first.

    Raises:
        BooksUnavailableError: the database failed, or was made by a newer release.
    """
    with transaction(engine) as connection:
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})")
        before = MigrationContext.configure(connection).get_current_revision()
        if before == HEAD:
            return before, HEAD
        if before is not None and before not in _known_revisions():
            raise BooksUnavailableError(
                f"The database is at revision {before}, which this release does not know. "
                "Run the newer release that has written it."
            )
        config = Config()
        config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
        config.attributes["connection"] = connection
        command.upgrade(config, HEAD)
    return before, HEAD


def _known_revisions() -> set[str]:
    return {script.revision for script in ScriptDirectory(str(SCRIPTS)).walk_revisions()}
