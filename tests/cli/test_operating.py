"""`tarazu check`, `audit` and `openapi`."""

import os
import pty
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from sqlalchemy import text

from tarazu.api.admin.openapi import admin_document_json
from tarazu.api.openapi import document_json
from tarazu.store.engine import open_engine, transaction
from tests.cli.commands import COMMAND, Commands, clean_environ
from tests.support.patience import PATIENCE_S

WRONG = """\
[plans.basic]
monthly_credits = -1

[models."a"]
credits = 1
"""


def execute(folder: Path, statement: str) -> None:
    """Change the books behind the service's back."""
    engine = open_engine(f"sqlite:///{folder}/tarazu.db")
    with transaction(engine) as connection:
        connection.execute(text(statement))
    engine.dispose()


def test_check_lists_what_is_sold(tarazu: Commands) -> None:
    """`check` on a good configuration prints its plans and models as tables, and which model is the default."""
    ran = tarazu("check")
    assert (ran.status, ran.err) == (0, "")
    lines = [line.split() for line in ran.out.splitlines()]
    assert lines[0] == ["tarazu.toml", "is", "right."]
    assert ["basic", "1,000", "60", "test/one"] in lines
    assert ["large", "50,000", "60", "all"] in lines
    assert ["(pay", "as", "you", "go)", "5", "test/one"] in lines
    assert ["test/one", "Test", "[One]", "1", "150", "openai"] in lines
    assert ["Without", "a", "model", "in", "the", "request,", "test/one", "answers."] in lines


def test_check_warns_of_a_price_that_bounds_nothing(tarazu: Commands, folder: Path) -> None:
    """A model that costs credits has max_output_tokens, or is named; the file is right all the same."""
    text = (folder / "tarazu.toml").read_text()
    assert "Warning" not in tarazu("check").out
    (folder / "tarazu.toml").write_text(text.replace("credits = 1\nmax_output_tokens = 4_096", "credits = 1"))
    warning = "test/one has a price, and its replies no bound: give it max_output_tokens."
    ran = tarazu("check")
    assert (ran.status, ran.out.splitlines()[-1]) == (0, f"Warning: {warning}")
    checked = tarazu.json("check")
    assert (checked["ok"], checked["warnings"]) == (True, [warning])
    (folder / "tarazu.toml").write_text(text.replace("credits = 1\nmax_output_tokens = 4_096", "credits = 0"))
    assert "Warning" not in tarazu("check").out


def test_check_prints_json(tarazu: Commands) -> None:
    """`check --json` prints one document: ok, the path, plans and models."""
    checked = tarazu.json("check")
    assert (checked["ok"], checked["path"], checked["problems"]) == (True, "tarazu.toml", [])
    assert checked["plans"][0] == {
        "name": "basic",
        "monthly_credits": 1_000,
        "requests_per_minute": 60,
        "models": ["test/one"],
    }
    assert checked["models"][0] == {
        "id": "test/one",
        "display_name": "Test [One]",
        "credits": 1,
        "payg_amount": 150,
        "backends": ["openai"],
    }


def test_check_without_a_file_is_about_the_demo(tarazu: Commands, folder: Path) -> None:
    """With no configuration anywhere the built-in demo catalogue is checked, and said to be it."""
    (folder / "tarazu.toml").unlink()
    ran = tarazu("check")
    assert (ran.status, ran.out.splitlines()[0]) == (0, "The built-in demo catalogue is right.")
    assert tarazu.json("check")["path"] is None


def test_check_tells_every_problem(tarazu: Commands, folder: Path) -> None:
    """`check` on a bad configuration prints all its problems, a line each with file, line, key and reason; status 1."""
    (folder / "tarazu.toml").write_text(WRONG)
    ran = tarazu("check")
    first, *problems, advice = ran.err.splitlines()
    assert (ran.status, ran.out) == (1, "")
    assert first == "tarazu: The configuration has 2 problems."
    assert [problem.split(": ")[:2] for problem in problems] == [
        ["tarazu.toml:2", "plans.basic.monthly_credits"],
        ["tarazu.toml:4", "models.a.backends"],
    ]
    assert advice == "Put it right, and check it with: tarazu check"


def test_check_prints_problems_as_json(tarazu: Commands, folder: Path) -> None:
    """`check --json` prints the problems in the document, with exit status 1."""
    (folder / "tarazu.toml").write_text(WRONG)
    ran = tarazu("check", "--json")
    assert (ran.status, ran.err) == (1, "")
    assert (ran.json["ok"], ran.json["plans"]) == (False, [])
    assert [(problem["file"], problem["line"], problem["key"]) for problem in ran.json["problems"]] == [
        ("tarazu.toml", 2, "plans.basic.monthly_credits"),
        ("tarazu.toml", 4, "models.a.backends"),
    ]


@pytest.mark.parametrize(
    "command", [("check",), ("account", "list"), ("audit",), ("db", "upgrade"), ("db", "backup", "b.db"), ("serve",)]
)
def test_a_configuration_that_is_not_there_is_told(tarazu: Commands, command: tuple[str, ...]) -> None:
    """Every command that reads the configuration takes --config, and says when the file cannot be read."""
    ran = tarazu(*command, "--config", "nowhere.toml")
    assert (ran.status, ran.out) == (1, "")
    assert ran.err == (
        "tarazu: nowhere.toml: cannot be read (No such file or directory), check the path\n"
        "Put it right, and check it with: tarazu check --config nowhere.toml\n"
    )


def test_the_configuration_option_wins_over_the_folder(tarazu: Commands, folder: Path) -> None:
    """--config names another file, whose books are used too."""
    (folder / "other.toml").write_text(
        '[database]\nurl = "sqlite:///other.db"\n' + (folder / "tarazu.toml").read_text()
    )
    tarazu.account()
    tarazu("db", "upgrade", "--config", "other.toml")
    assert (folder / "other.db").exists()
    assert tarazu.json("account", "list", "--config", "other.toml") == []


@pytest.mark.parametrize("command", [("db", "upgrade"), ("account", "list"), ("audit",), ("intake", "status")])
def test_a_database_that_cannot_be_opened_is_told(tarazu: Commands, folder: Path, command: tuple[str, ...]) -> None:
    """Every command that needs the books says that it cannot open them, and where their place is set; status 1."""
    configured = '[database]\nurl = "sqlite:///missing/tarazu.db"\n' + (folder / "tarazu.toml").read_text()
    (folder / "tarazu.toml").write_text(configured)
    ran = tarazu(*command)
    assert (ran.status, ran.out) == (1, "")
    problem, place = ran.err.splitlines()
    assert problem.startswith("tarazu: ")
    assert str(folder / "missing" / "tarazu.db") in problem
    assert place == "The books are where [database] url in tarazu.toml says."


def test_audit_says_what_it_compared(tarazu: Commands) -> None:
    """`audit` on books that balance tells how much it compared, with exit status 0."""
    tarazu("credit", "add", tarazu.account(), "5", "--reference", "r")
    ran = tarazu("audit")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out == (
        "Compared 1 account and 0 requests:\n"
        "used quotas, balances, daily usage, deadlines of holds, idempotency keys, requests, owners of rows.\n"
        "The books balance.\n"
    )
    report = tarazu.json("audit")
    assert {name: report[name] for name in ("accounts", "requests", "found", "differences")} == {
        "accounts": 1,
        "requests": 0,
        "found": 0,
        "differences": [],
    }
    assert report["rules"][0] == {"name": "used quotas", "found": 0, "listed": 0}


def test_audit_lists_every_difference(tarazu: Commands, folder: Path) -> None:
    """`audit` on books that do not balance prints each difference, booked and computed, with exit status 1."""
    account_id = tarazu.account()
    execute(folder, "UPDATE accounts SET balance = 1234, used = 7")
    ran = tarazu("audit")
    assert (ran.status, ran.err) == (1, "")
    heading, *lines = ran.out.splitlines()[4:]
    assert "There are 2 differences:" in ran.out
    assert heading.split() == ["ACCOUNT", "FIGURE", "OF", "BOOKED", "COMPUTED"]
    period = tarazu.json("account", "show", account_id)["period"]
    assert [line.split() for line in lines] == [
        [account_id, "used", period, "7", "0"],
        [account_id, "balance", "1,234", "0"],
    ]
    ran = tarazu("audit", "--json")
    assert ran.status == 1
    assert ran.json["differences"][1] == {
        "account_id": account_id,
        "figure": "balance",
        "subject": "",
        "booked": 1_234,
        "computed": 0,
    }


def test_audit_counts_the_differences_that_it_does_not_list(
    tarazu: Commands, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of very many, `audit` prints the first of each rule and how many more there are, with exit status 1."""
    monkeypatch.setattr("tarazu.store.audit.LISTED_MAX", 1)
    for _ in range(3):
        tarazu.account()
    execute(folder, "UPDATE accounts SET used = 7")
    ran = tarazu("audit")
    assert ran.status == 1
    assert "There are 3 differences:" in ran.out
    assert ran.out.splitlines()[-1] == "and 2 more in the used quotas"
    report = tarazu("audit", "--json").json
    assert (report["found"], len(report["differences"])) == (3, 1)


def test_audit_shows_on_a_terminal_what_it_is_doing(tarazu: Commands, folder: Path) -> None:
    """`audit` draws its progress on standard error, when that is a terminal, and takes it away; its result is clean."""
    tarazu.account()
    terminal, errors = pty.openpty()
    try:
        ran = subprocess.run(
            [COMMAND, "audit"],
            cwd=folder,
            env=clean_environ(TERM="xterm"),
            stdout=subprocess.PIPE,
            stderr=errors,
            timeout=PATIENCE_S,
            check=True,
        )
    finally:
        os.close(errors)
    with open(terminal, "rb", buffering=0) as screen:  # noqa: PTH123 - a descriptor has no path
        drawn = screen.read(65_536)
    assert b"comparing the owners of rows" in drawn
    assert ran.stdout.endswith(b"The books balance.\n")
    assert ran.stdout.startswith(b"Compared 1 account")


@pytest.mark.parametrize("options", [(), ("--json",)])
@pytest.mark.parametrize(
    ("which", "published"), [((), document_json), (("--admin",), admin_document_json)], ids=["public", "admin"]
)
def test_openapi_prints_the_contract(
    tarazu: Commands, options: tuple[str, ...], which: tuple[str, ...], published: Callable[[], bytes]
) -> None:
    """`openapi` prints the document that the service publishes, as JSON; `--admin` that of the admin API."""
    ran = tarazu("openapi", *which, *options)
    assert (ran.status, ran.err) == (0, "")
    assert ran.json == msgspec.json.decode(published())
    assert ran.json["openapi"].startswith("3.1")
