"""docs/backends.md, held against the code."""

import re
from pathlib import Path

import pytest

from tarazu.backends.conversation import OPENING
from tarazu.backends.health import BUSY_REST_MAX_S
from tarazu.backends.http_connection import HttpReply
from tarazu.backends.http_route import CONNECT_TIMEOUT_S
from tarazu.backends.kinds import KINDS
from tarazu.backends.kinds.anthropic import MAX_TOKENS_DEFAULT, TEMPERATURE_MAX, VERSION
from tarazu.backends.pool import AGAIN
from tarazu.backends.port import Fault, Remedy
from tarazu.backends.statuses import BUSY_IF_IT_SAYS_WHEN, FAULTS, TRAPS, status_error
from tarazu.domain.prompt import Settings
from tests.service.test_configuration_docs import load_example

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "backends.md").read_text("utf-8")
ONE_LINE = PAGE.replace("\n", " ")
REMEDIES = {
    Remedy.ELSEWHERE: "another backend is asked",
    Remedy.WAIT: "rests",
    Remedy.GIVE_UP: "no other backend",
    Remedy.OURS: "no backend",
}


def cells(first: str) -> list[str]:
    """Read the row of a table that begins with this cell."""
    (row,) = re.findall(rf"^\| {re.escape(first)} \|(.*)\|$", PAGE, re.MULTILINE)
    return [cell.strip() for cell in row.split("|")]


@pytest.mark.parametrize("setting", Settings.__struct_fields__)
def test_the_names_of_a_setting_are_those_that_are_sent(setting: str) -> None:
    """A column for each kind, in the order in which they are registered."""
    told = [cell.partition(",")[0].strip("`") for cell in cells(f"`{setting}`")]
    assert told == [dialect.names.get(setting, "dropped") for dialect in KINDS.values()]


@pytest.mark.parametrize("fault", Fault)
def test_every_fault_has_its_row(fault: Fault) -> None:
    """With its statuses, and with what follows."""
    when, what_follows = cells(f"`{fault.word}`")
    assert REMEDIES[fault.remedy] in what_follows
    assert [str(status) for status, means in FAULTS.items() if means is fault and str(status) not in when] == []
    assert ("the same again" in what_follows) == (fault in AGAIN)


@pytest.mark.parametrize("fault", Fault)
def test_every_status_of_a_fault_means_it(fault: Fault) -> None:
    """Those in its row are judged so, with a Retry-After where that is said."""
    when, _ = cells(f"`{fault.word}`")
    for part in when.split(";"):
        retry_after = "7" if "with a Retry-After" in part else None
        for status in map(int, re.findall(r"\b[1-5]\d\d\b", part)):
            assert status_error(HttpReply(status, b"", retry_after), 0.0).fault is fault


def test_what_counts_against_a_backend_is_said() -> None:
    """All faults that are its own."""
    (sentence,) = re.findall(r"The first three rows, (.*?) count against", ONE_LINE)
    first = re.findall(r"^\| `(\w+)` \| .* \| another backend", PAGE, re.MULTILINE)[:3]
    own = {fault.word for fault in Fault if fault.remedy is Remedy.ELSEWHERE}
    assert {*first, *re.findall(r"`(\w+)`", sentence)} == own


@pytest.mark.parametrize("word", TRAPS)
def test_every_word_has_its_row(word: str) -> None:
    """With the fault that it stands for."""
    (row,) = re.findall(rf"^\|[^|]*`{re.escape(word)}`[^|]*\|.*\|$", PAGE, re.MULTILINE)
    assert row.split("|")[-2].strip() == f"`{TRAPS[word].word}`"


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_its_address_and_header(kind: str) -> None:
    """As they are in the code."""
    dialect = KINDS[kind]
    assert f"`{dialect.path.replace('{model}', 'MODEL')}`" in PAGE
    assert dialect.url is None or f"`{dialect.url}`" in PAGE
    assert re.search(rf"`{dialect.key_header}`[^`]*(`Bearer` )?\(`{kind}`\)", PAGE)


def test_the_figures_are_those_of_the_code() -> None:
    """Each as it is in force."""
    figures = (
        f"without either it is {MAX_TOKENS_DEFAULT:,}",
        f"from 0 to {TEMPERATURE_MAX:g} with Anthropic",
        f"in version {VERSION} of its API",
        f"a user's turn with `{OPENING}`",
        f"{' and '.join(map(str, sorted(BUSY_IF_IT_SAYS_WHEN)))} with a Retry-After",
        f"at most {BUSY_REST_MAX_S / 60:g} minutes",
        f"no connection in {CONNECT_TIMEOUT_S} s",
    )
    assert [figure for figure in figures if figure not in ONE_LINE] == []


def test_every_example_is_on_the_page() -> None:
    """But the one of the README, which is of everything."""
    examples = {path.name for path in (ROOT / "examples").glob("*.toml")} - {"tarazu.toml"}
    assert examples == set(re.findall(r"\(\.\./examples/([\w-]+\.toml)\)", PAGE))


@pytest.mark.parametrize("text", re.findall(r"^```toml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE))
def test_what_the_page_shows_loads(tmp_path: Path, text: str) -> None:
    """Once the files and variables are there that it names."""
    load_example(tmp_path, text)
