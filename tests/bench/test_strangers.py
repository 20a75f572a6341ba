"""The benchmark of a service beside strangers, with a load that takes no time."""

import asyncio
from pathlib import Path

import pytest

from bench import strangers
from bench.strangers import heads, run


def test_a_small_run_tells_all_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each kind of head, and each time of the crowd, with the latencies of the caller beside it."""
    for name, value in {"SECONDS": 0.2, "CONNECTIONS": 30, "HEAD_BYTES": 50_000}.items():
        monkeypatch.setattr(strangers, name, value)
    report = asyncio.run(run(tmp_path))
    for row in (*heads(), "before", "while they come", "while they are held", "after"):
        assert f"| {row} |" in report


def test_each_head_is_as_large_as_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for what stands around the part that is large."""
    monkeypatch.setattr(strangers, "HEAD_BYTES", 50_000)
    assert all(50_000 <= len(head) < 50_200 for head in heads().values())
