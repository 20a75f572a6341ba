"""Releases that have landed: their code, out of this repository's history, run as it was."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest
from alembic.script import ScriptDirectory

from tarazu.domain.accounts import AccountStatus
from tarazu.store.migrate import SCRIPTS
from tests.support.history import ROOT, HistoryMissingError, take_out
from tests.support.missing import cannot_try
from tests.support.runs_first import found_first
from tests.support.service import Customer, RunningService

COMMITS = {
    "0001": "22dd85da7f3c68ee86309dbc21b69226f80670f6",
    "0002": "577c1a8913d7604b477e7808a9bab22d5d513fa5",
    "0003": "e87f2a71bb4fb7d012ff4f275b05afc89c36edac",
}
"""Of each revision but the newest: the commit of a release that works with it."""

_COMMANDS = '''"""Run the commands that come in, one a line, and answer each with its status and what it has printed."""
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO

from tarazu.cli.running import run

for line in sys.stdin:
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = run(json.loads(line))
    print(json.dumps([status, out.getvalue(), err.getvalue()]), flush=True)
'''


def revisions() -> list[str]:
    """List all revisions, oldest first."""
    return [script.revision for script in reversed(list(ScriptDirectory(str(SCRIPTS)).walk_revisions()))]


def source_of(revision: str, folder: Path) -> Path:
    """Take the code that works with a revision out of the history, once, into the folder; answer with what to import.

    That of the newest revision is this tree's own.
    """
    if revision == revisions()[-1]:
        return ROOT / "src"
    source = folder / revision / "src"
    if source.exists():
        return source
    if revision not in COMMITS:
        pytest.fail(f"No release is known for revision {revision}: add its commit to COMMITS in {__file__}.")
    missing = None
    try:
        take_out(COMMITS[revision], "src", source.parent)
    except HistoryMissingError as error:
        missing = error
    if missing:
        cannot_try(f"The code of revision {revision} comes out of the history. {missing}")
    return source


class ReleasedService(RunningService):
    """`tarazu serve` and the commands of a release, on books that are at its revision.

    Accounts and keys are made by its commands, inside `with commands_in_one_process()` without a process for each.
    `engine` and `provisioning` are this tree's: they are for books that have been migrated.
    """

    _commands: "subprocess.Popen[str] | None" = None

    def __init__(
        self, source: Path, folder: Path, backend_url: str, environ: Mapping[str, str] | None = None, **settings: Any
    ) -> None:
        environ = dict(environ or {})
        environ |= found_first(source, environ)
        super().__init__(folder, backend_url, environ=environ, **settings)

    @contextmanager
    def commands_in_one_process(self) -> Iterator[None]:
        """Make accounts and keys by commands that one process of the release runs, which starts once."""
        with subprocess.Popen(
            [sys.executable, "-c", _COMMANDS], stdin=PIPE, stdout=PIPE, text=True, env=self.environ
        ) as commands:
            self._commands = commands
            try:
                yield
            finally:
                self._commands = None
                commands.communicate()

    def customer(
        self,
        plan: str | None = "large",
        *,
        balance: int = 0,
        status: AccountStatus = AccountStatus.ACTIVE,
        models: Sequence[str] | None = None,
        limit_per_minute: int | None = None,
    ) -> Customer:
        """Open an account with a key."""
        account = self._make(*("account", "create", "--name", "Test", "--status", status), *_options(plan=plan))["id"]
        if balance:
            self._make("credit", "add", account, str(balance), "--reference", f"start of {account}")
        return self._issue(account, models=models, limit_per_minute=limit_per_minute)

    def another_key(self, customer: Customer, **settings: Any) -> Customer:
        """Issue one more key of the same account."""
        return self._issue(customer.account_id, **settings)

    def _issue(self, account_id: str, *, models: Sequence[str] | None = None, **settings: Any) -> Customer:
        options = _options(models=None if models is None else ",".join(models), **settings)
        issued = self._make("key", "create", account_id, "--name", "test key", *options)
        return Customer(account_id, issued["id"], issued["secret"])

    def _make(self, *arguments: str) -> Any:
        """Run a command that makes something; answer with what it prints."""
        if self._commands is None:
            return self.json(*arguments)
        assert self._commands.stdin is not None
        assert self._commands.stdout is not None
        print(json.dumps([*arguments, "--json", "--config", str(self.config)]), file=self._commands.stdin, flush=True)
        status, out, err = json.loads(self._commands.stdout.readline())
        assert status == 0, err
        return json.loads(out)


def _options(**values: object) -> list[str]:
    return [
        part
        for name, value in values.items()
        if value is not None
        for part in (f"--{name.replace('_', '-')}", str(value))
    ]
