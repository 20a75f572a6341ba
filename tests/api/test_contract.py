"""Schemathesis against the running service: what it answers is what the contract says, for any request."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.backend import ScriptedBackend
from tests.support.service import RunningService

CASES_MIN = 2_000
EXAMPLES_PER_OPERATION = 450
TIMEOUT_S = 240
SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")


@pytest.mark.timeout(TIMEOUT_S)
def test_every_answer_is_as_the_contract_says(
    service: RunningService, backend: ScriptedBackend, tmp_path: Path
) -> None:
    """At least 2,000 cases, all checks: no 5xx but 502 and 503, no undocumented status, no schema violation."""
    customer = service.customer()
    run = subprocess.run(
        [
            str(SCHEMATHESIS),
            "run",
            f"http://127.0.0.1:{service.port}/api/v1/openapi.json",
            "--checks=all",
            f"--max-examples={EXAMPLES_PER_OPERATION}",
            f"--header=Authorization: Bearer {customer.secret}",
            "--no-color",
        ],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    generated = re.search(r"(\d[\d,]*) generated", run.stdout)
    assert generated is not None, run.stdout
    assert int(generated[1].replace(",", "")) >= CASES_MIN
    assert backend.received, "no case reached a model"
