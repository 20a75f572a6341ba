"""What the tests find on a machine, bring along, or cannot have."""

import re
from pathlib import Path

import pytest
from dulwich.repo import Repo

from tests.support import history
from tests.support.curl import UsageError, run
from tests.support.history import HistoryMissingError, commit_hash, take_out
from tests.support.missing import cannot_try
from tests.support.node import OLDEST, find_node, version

COMMIT = "22dd85da7f3c68ee86309dbc21b69226f80670f6"
URL = "http://127.0.0.1:9/"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--fail", URL],
        ["-s", URL],
        ["-d", "@file", URL],
        ["-d", "a", "-d", "b", URL],
        ["-H", "Accept:", URL],
        ["https://127.0.0.1/"],
        [URL, URL],
        [URL + "{a,b}"],
        [],
    ],
)
def test_our_own_curl_refuses_what_it_does_not_know(arguments: list[str]) -> None:
    """So that no line passes that the real one would take otherwise."""
    with pytest.raises(UsageError):
        run(arguments)


def test_node_is_new_enough() -> None:
    """Whichever it is."""
    assert version(find_node().program) >= OLDEST


def test_a_copy_without_history_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither its commit nor an older one is known."""
    monkeypatch.setattr(history, "ROOT", tmp_path)
    monkeypatch.setattr(history, "ARCHIVED", tmp_path / "commit.txt")
    history.ARCHIVED.write_text("$Format:%H$\n")
    assert commit_hash() is None
    with pytest.raises(HistoryMissingError, match="use a clone"):
        take_out(COMMIT, "src", tmp_path)


def test_an_archive_knows_its_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Git has written it down when it made the archive."""
    assert history.ARCHIVED.read_text().strip() in {"$Format:%H$", commit_hash()}
    monkeypatch.setattr(history, "ROOT", tmp_path)
    monkeypatch.setattr(history, "ARCHIVED", tmp_path / "commit.txt")
    history.ARCHIVED.write_text(f"{COMMIT}\n")
    assert commit_hash() == COMMIT


def test_a_shallow_clone_says_how_it_gets_its_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit that is not there is what `git fetch --unshallow` brings."""
    Repo.init(tmp_path).close()
    monkeypatch.setattr(history, "ROOT", tmp_path)
    with pytest.raises(HistoryMissingError, match=re.escape("git fetch --unshallow")):
        take_out(COMMIT, "src", tmp_path)


def test_what_cannot_be_tried_is_skipped_and_fails_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine of one's own may lack it; CI may not."""
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="Here is no moon"):
        cannot_try("Here is no moon.")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="Here is no moon"):
        cannot_try("Here is no moon.")
