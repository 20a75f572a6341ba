"""Books in PostgreSQL are dumped under load and restored, by the very commands of the documents."""

import os
import subprocess
from pathlib import Path
from random import Random

from sqlalchemy import make_url

from tests.cli.commands import COMMAND
from tests.support.backend import ScriptedBackend
from tests.support.load import Load
from tests.support.service import RunningService
from tests.support.stores import PostgresqlStore, restartable_server
from tests.test_documents import ROOT, code_blocks

TIMEOUT_S = 60
REPLIES = 20


def test_a_dump_under_load_is_restored_to_exact_books(backend: ScriptedBackend, random: Random, tmp_path: Path) -> None:
    """It has every charge whose reply was delivered before it; restored it balances, and a service serves from it."""
    dump, restore = code_blocks(ROOT / "docs" / "postgresql.md", "sh")
    with restartable_server(tmp_path) as server:
        url = PostgresqlStore(server.url).new_books(tmp_path)
        restored_url = make_url(url).set(database="tarazu_restored").render_as_string(hide_password=False)
        with RunningService(tmp_path, backend.url, database_url=url) as service:

            def run(commands: str) -> None:
                environ = {
                    **service.environ,
                    "PATH": os.pathsep.join((str(server.tools), str(COMMAND.parent), os.environ["PATH"])),
                    "TARAZU_CONFIG": str(service.config),
                    "TARAZU_DATABASE_URL": url,
                    "RESTORED_URL": restored_url,
                }
                subprocess.run(["sh", "-euc", commands], cwd=tmp_path, env=environ, timeout=TIMEOUT_S, check=True)

            load = Load(service, backend, random)
            with load:
                load.wait_for_replies(REPLIES)
                delivered = set(load.delivered)
                run(dump)
                load.wait_for_replies(REPLIES)
            run(restore)
            customer = service.customer()
        folder = tmp_path / "restored"
        folder.mkdir()
        with RunningService(folder, backend.url, database_url=restored_url) as restored:
            with restored.engine.connect() as connection:
                rows = connection.exec_driver_sql("SELECT id FROM requests WHERE state = 'charged'").all()
            assert delivered <= {id_ for (id_,) in rows}
            assert restored.chat(customer).code == "invalid_api_key"
            assert restored.chat(restored.customer()).status == 200
            assert restored.run("audit").returncode == 0
