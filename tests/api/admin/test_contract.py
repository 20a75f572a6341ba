"""Schemathesis against the running service: what it answers is what the contract says, for any request."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.admin import AdminClient, admin_client
from tests.support.backend import ScriptedBackend
from tests.support.books import sqlite_only
from tests.support.scale import scaled
from tests.support.service import RunningService, checked
from tests.support.stores import Store

CASES_MIN = scaled(25)
CASES_OF_ONE_OPERATION = scaled(1)
CHAINS = scaled(1)
TIMEOUT_S = 400
SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
# What is printable, and whether a plan or an email is free, is beyond a schema: such a body may be refused as to its
# values.
SETTINGS = """
[checks]
positive_data_acceptance.expected-statuses = ["2xx", "404", "409", "422"]
"""


@pytest.fixture(scope="module")
def service(
    store: Store, module_backend: ScriptedBackend, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningService]:
    """A service of this module's own: nobody knows what books hold after a thousand requests made up."""
    folder = tmp_path_factory.mktemp("service")
    with checked(RunningService(folder, module_backend.url, database_url=store.new_books(folder))) as running:
        yield running


@pytest.fixture(scope="module")
def admin(service: RunningService) -> AdminClient:
    """A program that may do everything there."""
    return admin_client(service)


@sqlite_only
@pytest.mark.timeout(TIMEOUT_S)
def test_every_answer_is_as_the_contract_says(service: RunningService, admin: AdminClient, tmp_path: Path) -> None:
    """All checks: no 5xx but 503, no undocumented status, no schema violation, nothing open without a token."""
    (tmp_path / "schemathesis.toml").write_text(SETTINGS)

    def cases(phases: str, examples: int) -> int:
        run = subprocess.run(
            [
                str(SCHEMATHESIS),
                "run",
                f"http://127.0.0.1:{service.port}/api/admin/v1/openapi.json",
                "--checks=all",
                f"--phases={phases}",
                f"--max-examples={examples}",
                f"--header=Authorization: Bearer {admin.secret}",
                "--no-color",
            ],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=os.environ,
            check=False,
        )
        assert run.returncode == 0, run.stdout + run.stderr
        generated = re.search(r"([\d,]+) generated", run.stdout)
        assert generated is not None, run.stdout
        return int(generated[1].replace(",", ""))

    total = cases("examples,coverage,fuzzing", CASES_OF_ONE_OPERATION) + cases("stateful", CHAINS)
    assert total >= CASES_MIN
