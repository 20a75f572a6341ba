"""Schemathesis against the running service: what it answers is what the contract says, for any request."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.backend import ScriptedBackend
from tests.support.books import sqlite_only
from tests.support.scale import scaled
from tests.support.service import RunningService

CASES_MIN = scaled(100)
CASES_OF_ONE_OPERATION = scaled(85)
CHAINS = scaled(3)
"""Sequences of requests in which one answer leads to the next request."""
TIMEOUT_S = 600
HOOKS = Path(__file__).parents[1] / "support/schemathesis_hooks.py"
SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")


@sqlite_only
@pytest.mark.timeout(TIMEOUT_S)
def test_every_answer_is_as_the_contract_says(
    service: RunningService, backend: ScriptedBackend, tmp_path: Path
) -> None:
    """In hundreds of cases, by all checks: no 5xx but 502 and 503, no undocumented status, no schema violation."""

    def cases(phases: str, examples: int) -> int:
        run = subprocess.run(
            [
                str(SCHEMATHESIS),
                "run",
                f"http://127.0.0.1:{service.port}/api/v1/openapi.json",
                "--checks=all",
                f"--phases={phases}",
                f"--max-examples={examples}",
                f"--header=Authorization: Bearer {service.customer().secret}",
                "--no-color",
            ],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "SCHEMATHESIS_HOOKS": str(HOOKS)},
            check=False,
        )
        assert run.returncode == 0, run.stdout + run.stderr
        generated = re.search(r"([\d,]+) generated", run.stdout)
        assert generated is not None, run.stdout
        return int(generated[1].replace(",", ""))

    total = cases("examples,coverage,fuzzing", CASES_OF_ONE_OPERATION) + cases("stateful", CHAINS)
    assert total >= CASES_MIN
    assert backend.received, "no case reached a model"
