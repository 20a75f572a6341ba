"""Run commands in tests: in this process, which is fast, or in one of their own, as a person does."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from tarazu.cli.running import run
from tests.support.patience import PATIENCE_S

COMMAND = Path(sys.executable).with_name("tarazu")

CATALOGUE = """\
[billing]
default_model = "test/one"

[payg]
requests_per_minute = 5
models = ["test/one"]

[plans.basic]
monthly_credits = 1_000
requests_per_minute = 60
models = ["test/one"]

[plans.large]
monthly_credits = 50_000

[models."test/one"]
display_name = "Test [One]"
credits = 1
max_output_tokens = 4_096
payg_amount = 150
[[models."test/one".backends]]
kind = "openai"
url = "http://127.0.0.1:9/v1"
model = "one"

[models."test/two"]
credits = 2
max_output_tokens = 4_096
[[models."test/two".backends]]
kind = "openai"
url = "http://127.0.0.1:9/v1"
model = "two"
"""


class Ran(Struct, frozen=True):
    """What a command did."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What it printed, as one JSON document."""
        return json.loads(self.out)


class Commands:
    """Runs commands in this process, in the folder and environment that the test has set."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self._capture = capture

    def __call__(self, *arguments: str) -> Ran:
        """Run one command."""
        self._capture.readouterr()
        status = run(arguments)
        captured = self._capture.readouterr()
        return Ran(status, captured.out, captured.err)

    def json(self, *arguments: str) -> Any:
        """Run one command that must work, with --json."""
        ran = self(*arguments, "--json")
        assert ran.status == 0, ran.err
        return ran.json

    def account(self, *options: str) -> str:
        """Open an account; answer with its id."""
        account_id: str = self.json("account", "create", "--name", "Ada", *options)["id"]
        return account_id


def clean_environ(**variables: str) -> dict[str, str]:
    """Take over this process's environment without the variables that commands read."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TARAZU_")}
    return {**kept, **variables}


def run_process(
    *arguments: str,
    folder: Path,
    environ: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
    through: Sequence[str] = (),
) -> Ran:
    """Run one command in a process of its own; `through` a program that runs what its last arguments name."""
    ran = subprocess.run(
        [*through, COMMAND, *arguments],
        cwd=folder,
        env=clean_environ() if environ is None else environ,
        input=b"" if stdin is None else stdin,
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return Ran(ran.returncode, ran.stdout.decode(), ran.stderr.decode())
