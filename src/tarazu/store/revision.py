"""The revision of the schema: the one that this code works with, and the one that a database has."""

from sqlalchemy import Engine, inspect, text

from tarazu.store.engine import transaction

HEAD = "0004"
"""The newest of the migrations."""


def current_revision(engine: Engine) -> str | None:
    """Tell the revision of the database; None where there are no books yet."""
    with transaction(engine, read_only=True) as connection:
        if not inspect(connection).has_table("alembic_version"):
            return None
        revision: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one_or_none()
        return revision
