"""The benchmark of a service under pressure, with a load that takes no time."""

import asyncio
from pathlib import Path

import pytest

from bench import pressure
from bench.pressure import BrokenPromiseError, run
from tests.support.backend import completion


def test_a_small_run_tells_all_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who was served and who refused, how soon it was over, and what waiting costs."""
    for name, value in {"CALLERS": 4, "CAPACITY_S": 0.3, "OVERLOAD_S": 0.3, "SLOW_S": 0.6, "WAITING": 20}.items():
        monkeypatch.setattr(pressure, name, value)
    monkeypatch.setattr(pressure, "CALLERS_MAX", 800)
    report = asyncio.run(run(tmp_path))
    assert "| served |" in report
    assert "| 503 with Retry-After |" in report
    assert "s after the load's end a lone caller is served as before" in report
    assert "20 requests wait for a slow backend" in report
    assert "| beside them |" in report


def test_an_answer_that_is_neither_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that does not answer well is a 502 to the callers."""
    monkeypatch.setattr(pressure, "CAPACITY_S", 0.3)
    monkeypatch.setattr(pressure, "completion", lambda: completion(""))
    with pytest.raises(BrokenPromiseError, match="upstream_error"):
        asyncio.run(run(tmp_path))
