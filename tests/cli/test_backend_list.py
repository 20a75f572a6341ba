"""`tarazu backend list`, as a person reads it. What running services tell is tested beside the API."""

from pathlib import Path

import pytest

from tarazu.cli.clock import system_clock
from tarazu.domain.calendar import iso_time
from tarazu.service.books import open_books
from tarazu.store.backend_rests import BackendRest, write_rests
from tarazu.store.engine import transaction
from tests.cli.commands import Commands

MODELS = """
[models.a]
credits = 1
timeout_s = 30
[[models.a.backends]]
kind = "local"
priority = 1
max_concurrency = 2
[[models.a.backends]]
kind = "openai"
url = "https://api.example.com:8443/secret-path/v1"
model = "large"
api_key_env = "NO_SUCH_KEY"
weight = 3
timeout_s = 2.5
[[models.a.backends]]
kind = "anthropic"
model = "larger"
api_key_env = "NO_SUCH_KEY"
timeout_s = 99
enabled = false

[models.b]
credits = 1
[[models.b.backends]]
kind = "local"
"""
ROWS = [
    ["a#2", "openai", "api.example.com:8443", "large", "0", "3", "2.5", "ready"],
    ["a#3", "anthropic", "api.anthropic.com", "larger", "0", "1", "30", "disabled"],
    ["a#1", "local", "embedded", "1", "1", "2", "30", "ready"],
    ["b#1", "local", "embedded", "0", "1", "60", "ready"],
]
MINUTE_MS = 60_000


@pytest.fixture
def sold(tarazu: Commands, folder: Path) -> Commands:
    """Sell what these tests are about."""
    (folder / "tarazu.toml").write_text(MODELS)
    return tarazu


def tell(folder: Path, *rests: BackendRest) -> None:
    """Write the rests of processes into the books."""
    engine = open_books(f"sqlite:///{folder}/tarazu.db")
    for rest in rests:
        with transaction(engine) as connection:
            write_rests(connection, rest.process_id, [rest], system_clock())
    engine.dispose()


def rest(process: str, state: str, fault: str, *, since_ms: int, until_ms: int, backend: str = "a#2") -> BackendRest:
    """Make a rest of a backend in a process."""
    return BackendRest(
        process_id=process,
        backend=backend,
        model_id="a",
        state=state,
        fault=fault,
        since_ms=since_ms,
        until_ms=until_ms,
    )


def table(out: str) -> list[list[str]]:
    """Read the cells of the rows under the headings."""
    return [line.split() for line in out.split("\n\n", maxsplit=1)[0].splitlines()[1:]]


def test_the_backends_stand_in_the_order_in_which_they_are_asked(sold: Commands) -> None:
    """Model by model, within a model by priority, with what their settings come to; their keys are not needed."""
    ran = sold("backend", "list")
    assert (ran.status, ran.err, table(ran.out)) == (0, "", ROWS)
    assert "secret-path" not in ran.out


def test_one_model_is_listed_alone(sold: Commands) -> None:
    """And one that is not there is told with those that are."""
    assert table(sold("backend", "list", "b").out) == ROWS[3:]
    ran = sold("backend", "list", "c")
    assert (ran.status, ran.out, ran.err) == (1, "", "tarazu: There is no model c.\nThere are: a, b\n")


def test_a_rest_is_told_under_the_table(sold: Commands, folder: Path) -> None:
    """From when to when, why, and in how many processes; one that has tripped the backend says more than a busy one."""
    now_ms = system_clock()
    tell(
        folder,
        rest("p", "busy", "busy", since_ms=now_ms - 9_000, until_ms=now_ms + MINUTE_MS),
        rest("q", "tripped", "timeout", since_ms=now_ms, until_ms=now_ms + 2 * MINUTE_MS),
    )
    ran = sold("backend", "list")
    assert table(ran.out) == [[*ROWS[0][:-1], "tripped"], *ROWS[1:]]
    since, until = iso_time(now_ms - 9_000), iso_time(now_ms + 2 * MINUTE_MS)
    assert ran.out.splitlines()[-1] == f"a#2 rests since {since}, until {until}, in 2 processes: busy, timeout."
    told = sold.json("backend", "list", "a")[0]["rests"]
    assert [(each["process"], each["state"], each["fault"]) for each in told] == [
        ("p", "busy", "busy"),
        ("q", "tripped", "timeout"),
    ]


def test_a_rest_of_a_backend_that_is_disabled_since_is_not_told(sold: Commands, folder: Path) -> None:
    """Nor one of a backend that is not there any more: the configuration has the last word."""
    now_ms = system_clock()
    tell(
        folder,
        rest("p", "tripped", "timeout", since_ms=now_ms, until_ms=now_ms + MINUTE_MS, backend="a#3"),
        rest("q", "tripped", "timeout", since_ms=now_ms, until_ms=now_ms + MINUTE_MS, backend="a#4"),
    )
    ran = sold("backend", "list")
    assert table(ran.out) == ROWS
    assert "rests" not in ran.out
