"""`tarazu db upgrade` from every revision that has landed, on books as its release has left them."""

import http.client
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from sqlalchemy import Engine, inspect

from tarazu.store.engine import open_engine
from tarazu.store.revision import HEAD
from tests.migrations import kept_books
from tests.migrations.kept_books import KeptBooks, Rows, rows_of
from tests.migrations.releases import COMMITS, ReleasedService, revisions, source_of
from tests.support.answers import read_usage
from tests.support.backend import ScriptedBackend
from tests.support.service import USAGE, Customer, RunningService, checked
from tests.support.set_clock import SetClock
from tests.support.stores import Store

pytestmark = pytest.mark.both_stores

every_revision = pytest.mark.parametrize("revision", revisions())


class Upgraded(Struct, frozen=True):
    """Books of a release at the newest revision: their rows before and after, and a service on them."""

    revision: str
    kept: KeptBooks
    told: dict[str, Any]
    before: Rows
    after: Rows
    schema: dict[str, Any]
    service: RunningService


@pytest.fixture(scope="module", params=revisions())
def upgraded(
    request: pytest.FixtureRequest, store: Store, sources: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Upgraded]:
    """Upgrade the books of a release once for all that is to be seen of it; the service is not started."""
    folder = tmp_path_factory.mktemp("upgraded")
    kept = kept_books.read(request.param)
    clock = SetClock(folder)
    clock.set(kept.left_at)
    with ScriptedBackend() as backend:
        (folder / "released").mkdir()
        released = ReleasedService(
            source_of(request.param, sources), folder / "released", backend.url, database_url=store.nothing(folder)
        )
        assert released.json("db", "upgrade") == {"before": None, "after": request.param}
        url = released.configuration.database_url
        engine = open_engine(url)
        kept_books.fill(engine, kept)
        before = rows_of(engine)
        service = RunningService(folder, backend.url, database_url=url, environ=clock.environ, clock=clock)
        told = service.json("db", "upgrade")
        yield Upgraded(request.param, kept, told, before, rows_of(engine), _schema(engine), service)
        engine.dispose()


def test_every_revision_but_the_newest_has_a_release() -> None:
    """It is where the code comes from that has to go on while the books are migrated; see `releases.COMMITS`."""
    assert set(COMMITS) >= set(revisions()[:-1])


@every_revision
def test_kept_books_have_something_of_everything(revision: str) -> None:
    """Whatever a migration may forget is there to be lost."""
    tables = kept_books.read(revision).tables
    assert {row["state"] for row in tables["requests"]} == {"held", "charged", "released", "swept"}
    assert {row["source"] for row in tables["requests"]} == {"plan", "api_balance"}
    assert {row["period"] for row in tables["requests"]} == {"2025-12", "2026-01", "2026-02"}
    assert {row["status"] for row in tables["accounts"]} == {"active", "blocked", "unverified"}
    assert {row["reply"] is None for row in tables["idempotency_keys"]} == {True, False}
    for column in ("revoked_at_ms", "expires_at_ms", "limit_per_minute", "models"):
        assert {row[column] is None for row in tables["keys"]} == {True, False}
    assert {row["note"] for row in tables["topups"]} >= {None, "for February"}
    assert [row["stopped"] for row in tables["intake"]] == [1]
    if "backend_rests" in tables:
        assert {row["state"] for row in tables["backend_rests"]} == {"busy"}
    if "operators" in tables:
        assert {row["status"] for row in tables["operators"]} == {"active", "inactive"}
        assert {row["language"] for row in tables["logins"]} == {"fa"}
        for column in ("revoked_at_ms", "expires_at_ms"):
            assert {row[column] is None for row in tables["admin_tokens"]} == {True, False}
        assert {row["via"] for row in tables["acts"]} == {"command", "token", "holder"}
    assert [table for table, found in tables.items() if not found] == []


def test_upgrade_loses_nothing(upgraded: Upgraded) -> None:
    """All rows are there, and say in all columns that they had what they said before."""
    before, after = upgraded.before, upgraded.after
    assert upgraded.told == {"before": upgraded.revision, "after": HEAD}
    assert {table: len(after[table]) for table in before} == {table: len(found) for table, found in before.items()}
    assert _columns_of(before, after) == before


def test_upgraded_books_are_made_as_new_ones_are(upgraded: Upgraded, store: Store, tmp_path: Path) -> None:
    """Columns, keys, indexes and every guard: nobody can tell how old the books are."""
    new = open_engine(store.new_books(tmp_path))
    assert upgraded.schema == _schema(new)
    new.dispose()


def test_upgraded_books_balance_and_serve(upgraded: Upgraded) -> None:
    """Who could ask before can ask now, with what was left to them; who could not cannot; what was sent is replayed."""
    service = upgraded.service
    audit = service.run("audit")
    assert audit.returncode == 0, audit.stdout + audit.stderr
    callers = {name: Customer("", "", secret) for name, secret in upgraded.kept.secrets.items()}
    with checked(service):
        assert service.chat(callers["planned"]).headers["retry-after"] == "77"
        service.provisioning.resume_intake()
        for name in ("planned", "limited", "mixed", "payg"):
            before = read_usage(service, callers[name])
            assert service.chat(callers[name]).status == http.client.OK
            assert _spent(before, read_usage(service, callers[name])) == 1
        for name in ("expired", "revoked"):
            assert service.get(USAGE, callers[name]).status == http.client.UNAUTHORIZED
        replayed = service.post(callers["planned"], {"prompt": "Hello"}, idempotency_key="answered")
        assert (replayed.status, replayed.headers["idempotent-replayed"]) == (http.client.OK, "true")
        running = service.post(callers["planned"], {"prompt": "Hello"}, idempotency_key="running")
        assert running.status == http.client.CONFLICT


def _columns_of(before: Rows, after: Rows) -> Rows:
    """Cut the rows down to the columns that there were before."""
    return {
        table: [{column: row[column] for column in old} for old, row in zip(found, after[table], strict=True)]
        for table, found in before.items()
    }


def _schema(engine: Engine) -> dict[str, Any]:
    """Describe the tables, but for the partitions, which are made as months come."""
    inspector = inspect(engine)
    return {
        table: {
            "columns": {
                column["name"]: (str(column["type"]), column["nullable"], column["default"])
                for column in inspector.get_columns(table)
            },
            "key": inspector.get_pk_constraint(table),
            **{
                kind: sorted(str(_plain(found)) for found in getattr(inspector, f"get_{kind}")(table))
                for kind in ("foreign_keys", "unique_constraints", "check_constraints", "indexes")
            },
        }
        for table in inspector.get_table_names()
        if not table.startswith(kept_books.PARTITION_PREFIX)
    }


def _plain(found: dict[str, Any]) -> dict[str, Any]:
    """Write the conditions of partial indexes as text, so that they can be compared."""
    options = {name: str(option) for name, option in found.get("dialect_options", {}).items()}
    return {**found, "dialect_options": options}


def _spent(before: dict[str, Any], after: dict[str, Any]) -> int:
    of_quota: int = after["api_credits"]["used"] - before["api_credits"]["used"]
    of_balance: int = before["pay_as_you_go"]["balance"] - after["pay_as_you_go"]["balance"]
    return of_quota + of_balance
