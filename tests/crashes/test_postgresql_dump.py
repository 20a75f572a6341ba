"""Books in PostgreSQL are dumped under load and restored, by the very commands of the documents."""

import os
import subprocess
from pathlib import Path
from random import Random

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


def test_a_dump_under_load_is_restored_to_exact_books(
    postgresql_store: PostgresqlStore, backend: ScriptedBackend, random: Random, tmp_path: Path
) -> None:
    """It has every charge whose reply was delivered before it; restored it balances, and a service serves from it."""
    dump, restore = code_blocks(ROOT / "docs" / "postgresql.md", "sh")
    url = postgresql_store.new_books(tmp_path)
    restored_url = make_url(url).set(database="tarazu_restored").render_as_string(hide_password=False)
    with RunningService(tmp_path, backend.url, database_url=url) as service:
        [(tools,)] = look(service, "SELECT setting FROM pg_config WHERE name = 'BINDIR'")
        environ = {
            **service.environ,
            "PATH": os.pathsep.join((tools, str(COMMAND.parent), os.environ["PATH"])),
            "TARAZU_CONFIG": str(service.config),
            "TARAZU_DATABASE_URL": url,
            "RESTORED_URL": restored_url,
        }

        def run(commands: str) -> None:
            subprocess.run(["sh", "-euc", commands], cwd=tmp_path, env=environ, timeout=PATIENCE_S, check=True)

        load = Load(service, backend, random)
        with load:
            load.wait_for_replies(REPLIES)
            delivered = set(load.delivered)
            run(dump)
            load.wait_for_replies(REPLIES)
        run(restore)
        later = service.customer()
    folder = tmp_path / "restored"
    folder.mkdir()
    with RunningService(folder, backend.url, database_url=restored_url) as restored:
        charged = {id_ for (id_,) in look(restored, "SELECT id FROM requests WHERE state = 'charged'")}
        assert delivered <= charged
        assert restored.chat(later).code == "invalid_api_key"
        assert restored.chat(restored.customer()).status == 200
        assert restored.run("audit").returncode == 0
