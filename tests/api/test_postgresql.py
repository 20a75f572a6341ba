"""What a service does on PostgreSQL alone. That it does there all that it does on SQLite, the other modules show."""

import http.client
import re
from functools import partial
from pathlib import Path

import psycopg
import pytest

from tarazu.store.engine import transaction
from tarazu.store.postgresql import CONNECTIONS_MAX
from tests.support.answers import credits_left, states_of
from tests.support.at_once import at_once, held, wait_until
from tests.support.backend import ScriptedBackend
from tests.support.processes import pass_deadlines
from tests.support.service import USAGE, RunningService
from tests.support.stores import PostgresqlStore

CROWD = 20


@pytest.fixture(scope="module")
def store(postgresql_store: PostgresqlStore) -> PostgresqlStore:
    """PostgreSQL, for the module's service too."""
    return postgresql_store


def test_months_are_cut_ahead(service: RunningService) -> None:
    """This month's requests and those of the next two have partitions of their own."""
    with transaction(service.engine) as connection:
        names = connection.exec_driver_sql("SELECT relname FROM pg_class WHERE relname ~ '^requests_[0-9_]+$'").all()
    assert len(names) == 3


def test_a_process_keeps_to_its_share_of_the_servers_connections(
    service: RunningService, backend: ScriptedBackend
) -> None:
    """However many ask at once; the documents tell how many a process has at most."""
    customer = service.customer()
    service.engine.dispose()  # the tests' own connections
    with (
        psycopg.connect(service.configuration.database_url) as connection,
        held(backend, *[partial(service.chat, customer)] * CROWD),
    ):
        query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        at_once([partial(service.get, USAGE, customer)] * CROWD)
        counted = connection.execute(query).fetchone()
    assert counted is not None
    assert 0 < counted[0] <= CONNECTIONS_MAX


def test_what_a_dead_machine_held_is_swept_by_another(
    service: RunningService, backend: ScriptedBackend, tmp_path: Path
) -> None:
    """Two services on one database: one is killed and stays away, and the other gives the credits back."""
    url = service.configuration.database_url
    customer = service.customer("three")
    with RunningService(tmp_path, backend.url, database_url=url) as other:
        with held(backend, partial(other.chat, customer)) as [asked]:
            other.kill()
            with pytest.raises((OSError, http.client.HTTPException)):
                asked.result()
        assert credits_left(service, customer) == (2, 0)
        pass_deadlines(service)
        wait_until(lambda: states_of(service, customer) == ["swept"])
    assert credits_left(service, customer) == (3, 0)


def test_books_that_are_not_there_are_told_with_the_next_step(
    service: RunningService, store: PostgresqlStore, tmp_path: Path
) -> None:
    """On PostgreSQL nothing is migrated by the way: serve says which command does it, or that a newer release has."""
    config = tmp_path / "tarazu.toml"
    empty = store.nothing(tmp_path)
    config.write_text(service.config.read_text().replace(service.configuration.database_url, empty))
    refused = service.run("serve", config=config)
    assert refused.returncode == 1
    assert re.search(r"Make them with: .*tarazu db upgrade --config ", refused.stderr)
    assert service.run("db", "upgrade", config=config).returncode == 0
    assert service.run("account", "list", config=config).returncode == 0
    with psycopg.connect(empty, autocommit=True) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    refused = service.run("serve", config=config)
    assert refused.returncode == 1
    assert "revision 9999, which this release does not know. Run the newer release" in refused.stderr
