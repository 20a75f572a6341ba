"""Books in PostgreSQL are dumped under load and restored, by the very commands of the documents."""

import os
import stat
import subprocess
from pathlib import Path
from random import Random

import psycopg
import pytest
from sqlalchemy import make_url

from tests.cli.commands import COMMAND
from tests.support.answers import look
from tests.support.backend import ScriptedBackend
from tests.support.load import Load
from tests.support.patience import PATIENCE_S
from tests.support.service import RunningService
from tests.support.stores import PostgresqlStore
from tests.test_documents import ROOT, code_blocks

pytestmark = pytest.mark.postgresql

REPLIES = 20
ROLE = "tarazu"
"""Owns the restored books, and may make no databases."""


def test_a_dump_under_load_is_restored_to_exact_books(
    postgresql_store: PostgresqlStore, backend: ScriptedBackend, random: Random, tmp_path: Path
) -> None:
    """It has every charge whose reply was delivered before it; restored it balances, and a service serves from it."""
    dump, restore = code_blocks(ROOT / "docs" / "postgresql.md", "sh")
    url = postgresql_store.new_books(tmp_path)
    server = make_url(url)
    restored_url = server.set(username=ROLE, database="tarazu_restored").render_as_string(hide_password=False)
    make_role(url)
    with RunningService(tmp_path, backend.url, database_url=url) as service:
        [(tools,)] = look(service, "SELECT setting FROM pg_config WHERE name = 'BINDIR'")
        environ = {
            **service.environ,
            "PATH": os.pathsep.join((tools, str(COMMAND.parent), os.environ["PATH"])),
            "TARAZU_CONFIG": str(service.config),
            "RESTORED_URL": restored_url,
            "PGHOST": str(server.query["host"]),
            "PGDATABASE": str(server.database),
        }

        def run(commands: str, role: str | None) -> None:
            environ["PGUSER"] = str(role)
            subprocess.run(["sh", "-euc", commands], cwd=tmp_path, env=environ, timeout=PATIENCE_S, check=True)

        load = Load(service, backend, random)
        with load:
            load.wait_for_replies(REPLIES)
            delivered = set(load.delivered)
            run(dump, server.username)
            load.wait_for_replies(REPLIES)
        assert stat.S_IMODE((tmp_path / "tarazu.dump").stat().st_mode) == 0o600
        by_administrator, by_role = restore.split("\n", 1)
        run(by_administrator, server.username)
        run(by_role, ROLE)
        later = service.customer()
    folder = tmp_path / "restored"
    folder.mkdir()
    with RunningService(folder, backend.url, database_url=restored_url) as restored:
        charged = {id_ for (id_,) in look(restored, "SELECT id FROM requests WHERE state = 'charged'")}
        assert delivered <= charged
        assert restored.chat(later).code == "invalid_api_key"
        assert restored.chat(restored.customer()).status == 200
        assert restored.run("audit").returncode == 0


def make_role(url: str) -> None:
    """Make the role of the documents on the server of the tests."""
    with psycopg.connect(url, autocommit=True) as connection:
        if connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (ROLE,)).fetchone() is None:
            connection.execute(f"CREATE ROLE {ROLE} LOGIN".encode())
