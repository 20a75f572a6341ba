"""How the tests are shared out among pytest's processes, so that none of these is left alone with much at the end."""

from collections.abc import Iterable
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from xdist.scheduler import LoadFileScheduling

ROOT = Path(__file__).parents[2]
LONGEST = (
    "tests/test_linters.py",
    "tests/store/test_books_machine.py",
    "tests/simulation",
    "tests/migrations",
    "tests/crashes",
    "tests/browser/test_answers.py",
    "tests/api/test_worst_content.py",
    "tests/api/test_contract.py",
    "tests/api/admin/test_contract.py",
    "tests/cli/test_streams.py",
    "tests/api/test_races.py",
    "tests/backends/test_local.py",
    "tests/browser",
)
"""Files and folders that take longer than their number of tests tells: first these, then what has the most tests."""
PROCESSES_ENOUGH = 3
WAITING = (
    "tests/api/test_stuck_workers.py",
    "tests/api/test_intake_and_health.py",
    "tests/api/test_slow_clients.py",
    "tests/api/test_crowds.py",
    "tests/crashes/test_cut_connections.py",
    "tests/api/test_serving.py",
    "tests/api/admin/test_running.py",
)
"""Files that wait for time-outs of the product most of the time."""


class LongestFirst(LoadFileScheduling):  # type: ignore[misc]  # xdist's types are not told
    """A file's tests on one kind of database stay together: they share services and servers.

    Where there are processes enough, the last one runs what waits, and nothing else: it leaves the cores to the others.
    """

    def _split_scope(self, nodeid: str) -> str:
        file, _, test = nodeid.partition("::")
        return f"{file} on PostgreSQL" if "postgresql" in test.partition("[")[2] else file

    def _assign_work_unit(self, node: Any) -> None:
        runs_waiting = self._runs_waiting(node)
        first = min(self.workqueue, key=lambda unit: (_is_waiting(unit) is not runs_waiting, _place(unit)))
        self.workqueue.move_to_end(first, last=False)
        super()._assign_work_unit(node)

    def _reschedule(self, node: Any) -> None:
        if self._runs_waiting(node) and not any(map(_is_waiting, self.workqueue)):
            node.shutdown()
        else:
            super()._reschedule(node)

    @cached_property
    def _waits(self) -> bool:
        return self.numnodes >= PROCESSES_ENOUGH and any(map(_is_waiting, self.collection))

    def _runs_waiting(self, node: Any) -> bool:
        return self._waits and str(node.gateway.id) == f"gw{self.numnodes - 1}"


def make_share_of_code(asked_for: Iterable[str], *, number: int, of: int) -> None:
    """Import every so-manieth of the files; the others find its code made, in which each `assert` was rewritten."""
    paths = {ROOT / asked.partition("::")[0] for asked in asked_for}
    files = {file for path in paths for file in (path.rglob("test_*.py") if path.is_dir() else [path])}
    for file in sorted(files)[number::of]:
        import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))


def _is_waiting(unit: str) -> bool:
    return unit.startswith(WAITING)


def _place(unit: str) -> int:
    """Tell where in LONGEST a unit of work is named, or else that all of those come before it."""
    places = (place for place, path in enumerate(LONGEST) if unit.startswith(path))
    return next(places, len(LONGEST))
