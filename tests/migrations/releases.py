"""Releases that have landed: their code, out of this repository's history, run as it was."""

from collections.abc import Mapping, Sequence
from pathlib import Path
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
    "0004": "a5841af8178b0fb6ea634c05a4e2fe7fa9ae8522",
    "0005": "c3dab66f6862ea82163f6ae622532a870436dce7",
}
"""Of each revision but the newest: the commit of a release that works with it."""


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

    Accounts and keys are made by its commands.
    `engine` and `provisioning` are this tree's: they are for books that have been migrated.
    """

    def __init__(
        self, source: Path, folder: Path, backend_url: str, environ: Mapping[str, str] | None = None, **settings: Any
    ) -> None:
        environ = dict(environ or {})
        environ |= found_first(source, environ)
        super().__init__(folder, backend_url, environ=environ, **settings)

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
        account = self.json(*("account", "create", "--name", "Test", "--status", status), *_options(plan=plan))["id"]
        if balance:
            self.json("credit", "add", account, str(balance), "--reference", f"start of {account}")
        return self._issue(account, models=models, limit_per_minute=limit_per_minute)

    def another_key(self, customer: Customer, **settings: Any) -> Customer:
        """Issue one more key of the same account."""
        return self._issue(customer.account_id, **settings)

    def _issue(self, account_id: str, *, models: Sequence[str] | None = None, **settings: Any) -> Customer:
        options = _options(models=None if models is None else ",".join(models), **settings)
        issued = self.json("key", "create", account_id, "--name", "test key", *options)
        return Customer(account_id, issued["id"], issued["secret"])


def _options(**values: object) -> list[str]:
    return [
        part
        for name, value in values.items()
        if value is not None
        for part in (f"--{name.replace('_', '-')}", str(value))
    ]
