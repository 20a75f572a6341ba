"""The benchmark of what grows: which cells there are, and how they are written. `python -m bench.scale` is the run."""

from pathlib import Path

from bench.peers import wrk
from bench.scale import Cell, Measured, cells, report


def test_each_thing_grows_alone() -> None:
    """Workers, services, accounts and books, on either store; two services only where books can be shared."""
    sqlite = list(cells(["SQLite"], accounts=[100], requests=[0, 1_000]))
    postgresql = list(cells(["PostgreSQL"], accounts=[100], requests=[0, 1_000]))
    assert [(cell.workers, cell.accounts, cell.requests) for cell in sqlite] == [
        (1, 1, 0),
        (2, 1, 0),
        (4, 1, 0),
        (1, 100, 0),
        (1, 10_000, 0),
        (1, 10_000, 1_000),
    ]
    assert len(postgresql) == len(sqlite) + 1
    assert Cell(store="PostgreSQL", services=2) in postgresql


def test_services_are_added_up_and_the_slowest_answer_counts() -> None:
    """Each was asked by a load of its own."""
    loads = [wrk.Load(1_000, 1_500.0, 10.0, 30.0), wrk.Load(1_000, 1_400.0, 12.0, 25.0)]
    text = report({Cell(store="PostgreSQL", services=2): Measured(loads, 410.0, 100 * 1_024**2)}, "versions")
    assert "| PostgreSQL | two services | 1 | 1 | 0 | 2,900 | 12.0 | 30.0 | 410 | 100 |" in text


def test_keys_are_read_from_a_file_beside_the_script(tmp_path: Path) -> None:
    """A script may hold 65,536 texts, and there are more keys."""
    script = tmp_path / "post.lua"
    wrk.write_script(script, {}, b"{}", keys=["trz_1", "trz_2"])
    assert (tmp_path / "post.keys").read_text() == "trz_1\ntrz_2"
    assert f'io.lines("{tmp_path}/post.keys")' in script.read_text()
