"""Where the time of a run went: the slowest files, and the sum by folder."""

from collections import defaultdict
from pathlib import PurePosixPath
from typing import Any

import pytest


def write_durations(terminal: Any, files_shown: int) -> None:
    """Write the slowest files and the sum by folder; setting up and tearing down count for the file that needs it."""
    files = _durations(terminal)
    if not files_shown or not files:
        return
    folders: dict[str, list[float]] = defaultdict(list)
    for file, durations in files.items():
        folders[str(PurePosixPath(file).parent)] += durations
    terminal.section(f"slowest {files_shown} files, in seconds of a process")
    for line in _lines(files)[:files_shown]:
        terminal.line(line)
    terminal.section("by folder")
    for line in (*_lines(folders), *_lines({"in all": [seconds for each in files.values() for seconds in each]})):
        terminal.line(line)


def _durations(terminal: Any) -> dict[str, list[float]]:
    """List, by file, how long each test took in all its phases."""
    tests: dict[str, float] = defaultdict(float)
    for reports in terminal.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                tests[report.nodeid] += report.duration
    files: dict[str, list[float]] = defaultdict(list)
    for nodeid, seconds in tests.items():
        files[nodeid.partition("::")[0]].append(seconds)
    return files


def _lines(durations: dict[str, list[float]]) -> list[str]:
    """Say the sum and the number of tests of each, the longest first."""
    longest = sorted(durations.items(), key=lambda each: sum(each[1]), reverse=True)
    return [f"{sum(seconds):8.1f}  {len(seconds):5} tests  {name}" for name, seconds in longest]
