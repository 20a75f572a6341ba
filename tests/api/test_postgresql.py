"""What a service does on PostgreSQL alone. That it does there all that it does on SQLite, the other modules show."""

from pathlib import Path

import psycopg
import pytest

from tarazu.store.engine import transaction
from tests.support.service import RunningService
from tests.support.stores import PostgresqlStore


@pytest.fixture(scope="module")
def store(postgresql_store: PostgresqlStore) -> PostgresqlStore:
    """PostgreSQL, for the module's service too."""
    return postgresql_store


def test_months_are_cut_ahead(service: RunningService) -> None:
    """This month's requests and those of the next two have partitions of their own."""
    with transaction(service.engine) as connection:
        names = connection.exec_driver_sql("SELECT relname FROM pg_class WHERE relname ~ '^requests_[0-9_]+$'").all()
    assert len(names) == 3


def test_books_that_are_not_there_are_told_with_the_next_step(
    service: RunningService, store: PostgresqlStore, tmp_path: Path
) -> None:
    """On PostgreSQL nothing is migrated by the way: serve says which command does it, or that a newer release has."""
    config = tmp_path / "tarazu.toml"
    empty = store.new_database("empty_books")
    config.write_text(service.config.read_text().replace(service.configuration.database_url, empty))
    refused = service.run("serve", config=config)
    assert refused.returncode == 1
    assert "Make or migrate the books with: tarazu db upgrade" in refused.stderr
    assert service.run("db", "upgrade", config=config).returncode == 0
    assert service.run("account", "list", config=config).returncode == 0
    with psycopg.connect(empty, autocommit=True) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    refused = service.run("serve", config=config)
    assert refused.returncode == 1
    assert "revision 9999, which this release does not know. Run the newer release" in refused.stderr
