"""`tarazu db upgrade` beside services that go on: those of the release before, and then those of this one."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from random import Random

import psycopg
import pytest
from sqlalchemy import event

from tarazu.store import migrate
from tarazu.store.engine import open_engine
from tarazu.store.revision import HEAD
from tests.migrations.releases import ReleasedService, revisions
from tests.support.backend import ScriptedBackend
from tests.support.load import Load
from tests.support.patience import PATIENCE_S
from tests.support.processes import workers
from tests.support.service import RunningService

pytestmark = [
    pytest.mark.both_stores,
    pytest.mark.timeout(400),
]  # up to three services are started, on a machine with other work

the_release_before = pytest.mark.parametrize("revision", revisions()[-2:-1])
on_postgresql = pytest.mark.parametrize("store_kind", ["postgresql"], indirect=True)
on_sqlite = pytest.mark.parametrize("store_kind", ["sqlite"], indirect=True)
REPLIES = 60
TRIES = 4
SERVED = {200, 404, 502}
"""What the load is answered: replies, a model that is not for sale to one of its accounts, and failures of a model."""


@the_release_before
def test_the_release_before_goes_on_while_the_books_are_migrated(
    revision: str, released: ReleasedService, updated: RunningService, backend: ScriptedBackend
) -> None:
    """No request fails under the migration or after it, and every reply is charged once."""
    with released:
        processes = workers(released)
        load = load_on(released, backend, 1)
        with load:
            load.wait_for_replies(REPLIES)
            assert updated.json("db", "upgrade") == {"before": revision, "after": HEAD}
            load.wait_for_replies(REPLIES)
        assert workers(released) == processes
    assert_all_served(load)
    with updated:
        load.asked = [updated]
        with load:
            load.wait_for_replies(REPLIES)
        assert_all_served(load)
        load.assert_books_exact(charged_unseen=0)
    assert "Traceback" not in released.log.read_text() + updated.log.read_text()


@the_release_before
@on_postgresql
def test_two_releases_serve_beside_each_other(
    released: ReleasedService, updated: RunningService, backend: ScriptedBackend
) -> None:
    """The new one is started beside the old one, and the old one stopped, while no request fails."""
    with ExitStack() as services:
        services.enter_context(released)
        load = load_on(released, backend, 2)
        with load:
            updated.json("db", "upgrade")
            services.enter_context(updated)
            load.asked = [updated, released]
            load.wait_for_replies(REPLIES)
            load.asked = [updated]
            load.wait_for_replies(REPLIES)  # whoever was asked before has answered by then
            assert released.stop() == 0
            load.wait_for_replies(REPLIES)
        assert_all_served(load)
        load.assert_books_exact(charged_unseen=0)


@the_release_before
@on_sqlite
def test_on_sqlite_the_new_release_migrates_at_its_start(
    released: ReleasedService, updated: RunningService, backend: ScriptedBackend
) -> None:
    """Stop the one, start the other: nothing else is to be done, and every reply is charged once."""
    load = load_on(released, backend, 3)
    for service in (released, updated):
        load.asked = [service]
        with service:
            with load:
                load.wait_for_replies(REPLIES)
            if service is updated:
                load.assert_books_exact(charged_unseen=0)
    assert_all_served(load)


@the_release_before
@on_postgresql
def test_a_migration_that_has_to_wait_lets_the_others_go_first(
    revision: str, released: ReleasedService, backend: ScriptedBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gives up all its locks, and tries again and again; meanwhile no request fails."""
    monkeypatch.setattr(migrate, "RETRY_PAUSE_S", 0.1)
    engine = open_engine(released.configuration.database_url)
    tries = threading.Semaphore(0)

    @event.listens_for(engine, "before_cursor_execute")
    def _count(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if "pg_advisory_xact_lock" in statement:
            tries.release()

    with released, ThreadPoolExecutor(1) as pool:
        load = load_on(released, backend, 4)
        with load:
            with last_table_locked(released):
                upgraded = pool.submit(migrate.upgrade, engine)
                for _ in range(TRIES):
                    assert tries.acquire(timeout=PATIENCE_S)
                load.wait_for_replies(REPLIES)
                assert not upgraded.done()
            assert upgraded.result() == (revision, HEAD)
            load.wait_for_replies(REPLIES)
    engine.dispose()
    assert_all_served(load)


def load_on(released: ReleasedService, backend: ScriptedBackend, seed: int) -> Load:
    """Open the accounts of a load that can be replayed."""
    return Load(released, backend, Random(seed))  # noqa: S311 - as it says


def assert_all_served(load: Load) -> None:
    """Check that the load met no refusal and no closed door."""
    assert set(load.statuses) <= SERVED, load.statuses
    assert load.cut == 0


@contextmanager
def last_table_locked(service: RunningService) -> Iterator[None]:
    """Lock what every migration needs last, when it has locked all else."""
    with psycopg.connect(service.configuration.database_url) as connection:
        connection.execute("LOCK TABLE alembic_version IN SHARE MODE")
        yield
