"""What the tests find on a machine, bring along, or cannot have."""

import re
import signal
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

import pytest
from dulwich.repo import Repo

from tests.support import history
from tests.support.at_once import wait_until
from tests.support.curl import UsageError, run
from tests.support.history import ROOT, HistoryMissingError, commit_hash, take_out
from tests.support.missing import cannot_try
from tests.support.node import OLDEST, find_node, version
from tests.support.processes import has_ended
from tests.support.seeds import SEED_VARIABLE, session_seed

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


def test_a_seed_that_is_no_number_is_refused_with_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is what a person types to repeat a failure."""
    monkeypatch.setenv(SEED_VARIABLE, "x")
    with pytest.raises(pytest.UsageError, match="digits"):
        session_seed.__wrapped__()


def test_what_a_killed_pytest_has_started_is_ended() -> None:
    """A service and a server do not outlive the process that has started them for a test."""
    ran = subprocess.run([sys.executable, "-c", KILLED], cwd=ROOT, stdout=PIPE, text=True, check=False)
    assert ran.returncode == -signal.SIGKILL
    process_id, folder = ran.stdout.split()
    wait_until(lambda: has_ended(int(process_id)))
    wait_until(lambda: not Path(folder).exists())


KILLED = '''"""Start what lives for long, and be killed."""
import os
import signal
import subprocess
from pathlib import Path
from tempfile import mkdtemp

from tests.support.left_behind import end_process_with_us, remove_server_with_us

process = subprocess.Popen(["sleep", "600"], stdout=subprocess.DEVNULL)
folder = mkdtemp()
end_process_with_us(process.pid)
remove_server_with_us(Path(folder))
print(process.pid, folder, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
'''
