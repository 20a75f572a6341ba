"""How the tests are shared out among pytest's processes, so that none of these is left alone with much at the end."""

from pathlib import Path

from xdist.scheduler import LoadFileScheduling

ROOT = Path(__file__).parents[2]
LONGEST = (
    "tests/test_linters.py",
    "tests/store/test_books_machine.py",
    "tests/api/test_contract.py",
    "tests/migrations",
    "tests/crashes",
    "tests/api/test_intake_and_health.py",
    "tests/api/admin/test_running.py",
    "tests/api/admin/test_contract.py",
    "tests/simulation",
    "tests/browser",
)
"""Files and folders that take longer than their number of tests tells: first these, then what has the most tests."""


class LongestFirst(LoadFileScheduling):  # type: ignore[misc]  # xdist's types are not told
    """A file's tests on one kind of database stay together: they share services and servers."""

    def _split_scope(self, nodeid: str) -> str:
        file, _, test = nodeid.partition("::")
        return f"{file} on PostgreSQL" if "postgresql" in test.partition("[")[2] else file

    def _assign_work_unit(self, node: object) -> None:
        self.workqueue.move_to_end(min(self.workqueue, key=_place), last=False)
        super()._assign_work_unit(node)


def _place(unit: str) -> int:
    """Tell where in LONGEST a unit of work is named, or else that all of those come before it."""
    places = (place for place, path in enumerate(LONGEST) if unit.startswith(path))
    return next(places, len(LONGEST))
