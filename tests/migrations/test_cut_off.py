"""Migrations that are killed on the way, or run twice at once: the books are at one revision or at the other, whole."""

import json
import re
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tarazu.store.engine import open_engine
from tarazu.store.revision import HEAD, current_revision
from tests.migrations import kept_books
from tests.migrations.kept_books import rows_of
from tests.migrations.releases import ReleasedService, revisions
from tests.support.runs_first import runs_first
from tests.support.service import RunningService

pytestmark = pytest.mark.both_stores

the_release_before = pytest.mark.parametrize("revision", revisions()[-2:-1])
CUTS_MIN = 2
"""After the change of the revision, and before the commit: every migration has those."""
CUTS_MAX = 100

_SITE = '''"""Kill this process after so many changes to the database, or commits that were about to be."""
import os
import signal
from sqlalchemy import event
from sqlalchemy.engine import Engine

done = 0


def count(*_):
    global done
    done += 1
    if done == int(os.environ["CHANGES"]):
        os.kill(os.getpid(), signal.SIGKILL)


@event.listens_for(Engine, "after_cursor_execute")
def executed(_connection, _cursor, statement, *_):
    if statement.split()[0] in ("CREATE", "ALTER", "DROP", "INSERT", "UPDATE", "DELETE"):
        count()


event.listen(Engine, "commit", count)
'''


@the_release_before
def test_a_migration_that_is_killed_leaves_the_old_books_whole(
    revision: str, released: ReleasedService, updated: RunningService, tmp_path: Path
) -> None:
    """After any of its statements and right before its commit; the next one does it all."""
    engine = open_engine(released.configuration.database_url)
    kept_books.fill(engine, kept_books.read(revision))
    before = rows_of(engine)
    updated.environ |= runs_first(tmp_path, _SITE, updated.environ)
    killed = 0
    while (ran := _killed_after(updated, killed + 1)).returncode == -signal.SIGKILL:
        killed += 1
        assert killed < CUTS_MAX
        assert current_revision(engine) == revision
        assert rows_of(engine) == before
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == {"before": revision, "after": HEAD}
    assert killed >= CUTS_MIN
    engine.dispose()


def _killed_after(service: RunningService, changes: int) -> "subprocess.CompletedProcess[str]":
    service.environ["CHANGES"] = str(changes)
    return service.run("db", "upgrade", "--json")


@the_release_before
@pytest.mark.usefixtures("released")
def test_two_upgrades_at_once_migrate_once(revision: str, updated: RunningService) -> None:
    """One does it; the other waits, and finds it done."""
    with ThreadPoolExecutor(2) as pool:
        done = [each.result() for each in [pool.submit(updated.json, "db", "upgrade") for _ in range(2)]]
    assert sorted(each["before"] for each in done) == [revision, HEAD]
    assert {each["after"] for each in done} == {HEAD}


@the_release_before
@pytest.mark.parametrize("store_kind", ["postgresql"], indirect=True)
@pytest.mark.usefixtures("released")
def test_on_postgresql_serve_refuses_books_of_the_release_before(revision: str, updated: RunningService) -> None:
    """It says where they are, and what to do; nothing is migrated by the way."""
    refused = updated.run("serve")
    assert refused.returncode == 1
    assert f"is at revision {revision}, of an older release; this release works with {HEAD}" in refused.stderr
    assert re.search(r"Migrate the books with: .*tarazu db upgrade --config ", refused.stderr)
    assert updated.json("db", "upgrade")["before"] == revision
