"""Backups and restores while the service runs under load: it goes on, and both books are exact."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from random import Random

import pytest

from tarazu.domain.keys import base62
from tarazu.service.identifiers import COMPLETION_PREFIX, TIME_DIGITS
from tarazu.store.sqlite import connect
from tests.support.answers import assert_refused, credits_left, look, states_of
from tests.support.at_once import held, wait_until
from tests.support.backend import ScriptedBackend
from tests.support.backups import dump_of
from tests.support.books import Books
from tests.support.load import Load
from tests.support.processes import pass_deadlines, workers
from tests.support.scale import scaled
from tests.support.service import PATIENT, RunningService

BACKUPS = scaled(0.25, least=2)
RESTORES = scaled(0.15)
KILLS = scaled(0.25, least=2)
REPLIES = 20
ORDINARY = {200, 404, 502}
"""What the load is answered in any case: it asks for a model that not all may use, and the backend fails at times."""
LARGE_ROWS = 60_000
"""Requests of books whose restore takes long enough to be killed in its middle."""
DELAY_MAX_S = 0.2


@pytest.fixture
def service(backend: ScriptedBackend, tmp_path: Path) -> Iterator[RunningService]:
    """A service with two workers."""
    with RunningService(tmp_path, backend.url, catalogue=PATIENT, server="workers = 2") as service:
        yield service


def back_up(service: RunningService, name: str = "backup.db") -> Path:
    """Back up the books as an operator does."""
    path = service.folder / name
    ran = service.run("db", "backup", str(path))
    assert ran.returncode == 0, ran.stderr
    return path


def restore(service: RunningService, path: Path) -> None:
    """Restore the books as an operator does."""
    ran = service.run("db", "restore", str(path), "--yes")
    assert ran.returncode == 0, ran.stderr


def ids_in(path: Path, state: str) -> set[str]:
    """List the requests of a backup that are in this state."""
    with closing(connect(path, "mode=ro")) as connection:
        return {id_ for (id_,) in connection.execute("SELECT id FROM requests WHERE state = ?", (state,))}


def assert_balanced(path: Path) -> None:
    """Open a backup as books and audit it."""
    books = Books(f"sqlite:///{path}")
    books.assert_balanced()
    assert books.rows("PRAGMA integrity_check") == [("ok",)]
    books.engine.dispose()


def test_backups_under_load_are_whole(service: RunningService, backend: ScriptedBackend, random: Random) -> None:
    """Each balances, and has every charge whose reply was delivered before it began; nobody is refused meanwhile."""
    load = Load(service, backend, random)
    backups = []
    with load:
        for number in range(BACKUPS):
            load.wait_for_replies(REPLIES)
            delivered = set(load.delivered)
            backups.append((back_up(service, f"backup-{number}.db"), delivered))
    for path, delivered in backups:
        assert delivered <= ids_in(path, "charged")
        assert_balanced(path)
    load.assert_books_exact(charged_unseen=0)
    assert load.cut == 0
    assert set(load.statuses) <= ORDINARY


def test_restores_under_load_leave_exact_books(
    service: RunningService, backend: ScriptedBackend, random: Random
) -> None:
    """The same processes serve on from the restored books: what they charge from then on is what they deliver."""
    pids, restored_ms = workers(service), 0
    load = Load(service, backend, random)
    with load:
        load.wait_for_replies(REPLIES)
        path = back_up(service)
        for _ in range(RESTORES):
            late = service.customer()
            assert service.chat(late).status == 200
            load.wait_for_replies(REPLIES)
            restore(service, path)
            restored_ms = time.time_ns() // 1_000_000 + 1
            assert_refused(service.chat(late), 401, "invalid_api_key", counted=False)
            load.wait_for_replies(REPLIES)
    load.wait_for_sweep()
    delivered = set(load.delivered)
    charged = {id_ for (id_,) in look(service, "SELECT id FROM requests WHERE state = 'charged'")}
    since = {id_ for id_ in delivered if id_ >= COMPLETION_PREFIX + base62(restored_ms, TIME_DIGITS)}
    assert since
    assert since <= charged, "a reply was delivered from the restored books and is not charged in them"
    assert charged - ids_in(path, "charged") <= delivered, "something is charged without its reply"
    assert load.cut == 0
    assert set(load.statuses) <= ORDINARY
    assert workers(service) == pids
    assert look(service, "PRAGMA journal_mode") == [("wal",)]
    assert look(service, "PRAGMA integrity_check") == [("ok",)]
    assert service.run("audit").returncode == 0
    assert "Traceback" not in service.log.read_text()


def test_a_request_that_the_backup_does_not_know_costs_nothing(
    service: RunningService, backend: ScriptedBackend
) -> None:
    """Admitted after the backup and running in the restore, it ends with 502, and the books know nothing of it."""
    customer = service.customer("three")
    path = back_up(service)
    with held(backend, partial(service.chat, customer)) as [asked]:
        restore(service, path)
    assert_refused(asked.result(), 502, "upstream_error")
    assert states_of(service, customer) == []
    assert credits_left(service, customer) == (3, 0)


def test_a_request_that_runs_through_both_is_served(service: RunningService, backend: ScriptedBackend) -> None:
    """Its hold is in the backup, so it is charged in the restored books, once, and its caller gets the reply."""
    customer = service.customer("three")
    with held(backend, partial(service.chat, customer)) as [asked]:
        restore(service, back_up(service))
    assert asked.result().status == 200
    assert states_of(service, customer) == ["charged"]
    assert credits_left(service, customer) == (2, 0)


def test_a_hold_of_the_backup_that_has_ended_since_is_swept(service: RunningService, backend: ScriptedBackend) -> None:
    """In the restored books it is held again, until its deadline gives the credits back."""
    customer = service.customer("three")
    with held(backend, partial(service.chat, customer)):
        path = back_up(service)
    assert states_of(service, customer) == ["charged"]
    restore(service, path)
    assert states_of(service, customer) == ["held"]
    pass_deadlines(service)
    wait_until(lambda: states_of(service, customer) == ["swept"])
    assert credits_left(service, customer) == (3, 0)
    assert service.run("audit").returncode == 0


def test_a_key_that_was_revoked_since_the_backup_is_valid_again(service: RunningService) -> None:
    """As the documents warn: what was done since is undone, with the next request."""
    customer = service.customer()
    path = back_up(service)
    service.provisioning.revoke_key(customer.key_id)
    assert service.chat(customer).code == "invalid_api_key"
    restore(service, path)
    assert service.chat(customer).status == 200


def test_a_restore_that_is_killed_leaves_one_of_the_books_whole(service: RunningService, random: Random) -> None:
    """Before its one commit the books are as they were, after it as in the backup; the service goes on with them."""
    customer = service.customer()
    assert service.chat(customer).status == 200
    with service.engine.begin() as connection:
        connection.exec_driver_sql(
            "WITH RECURSIVE numbers(number) AS"  # noqa: S608 - a number
            f" (SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < {LARGE_ROWS})"
            " INSERT INTO requests SELECT id || number, period, account_id, key_id, model_id, credits, source,"
            " 'released', day, created_at_ms, deadline_ms, ended_at_ms, tries, prompt_tokens, completion_tokens, reason"
            " FROM requests, numbers"
        )
    path = back_up(service)
    backed_up = {row[0] for row in dump_of(path)["accounts"]}
    killed = 0
    for number in range(KILLS):
        later = service.customer().account_id
        present = {id_ for (id_,) in look(service, "SELECT id FROM accounts")}
        seen = kept_files(service)
        process = subprocess.Popen(
            [sys.executable, "-m", "tarazu", "db", "restore", str(path), "--yes", "--config", str(service.config)],
            env=service.environ,
            stdout=subprocess.DEVNULL,
        )
        wait_until(lambda seen=seen: kept_files(service) != seen, timeout_s=30)  # type: ignore[misc]
        time.sleep(random.uniform(0, DELAY_MAX_S) if number else 0)
        process.kill()
        killed += process.wait() != 0
        found = {id_ for (id_,) in look(service, "SELECT id FROM accounts")}
        assert later in present
        assert found in (present, backed_up)
        assert look(service, "PRAGMA integrity_check") == [("ok",)]
        assert service.chat(customer).status == 200
        (kept,) = kept_files(service) - seen
        assert {row[0] for row in dump_of(kept)["accounts"]} == present
    assert killed
    assert service.run("audit").returncode == 0


def kept_files(service: RunningService) -> set[Path]:
    """List the files that restores have kept."""
    return set(service.folder.glob("tarazu.before-restore-*.db"))
