"""The benchmark of what grows: which cells there are, and how they are written. `python -m bench.scale` is the run."""

import os
import subprocess
import sys
import time
from pathlib import Path
from subprocess import PIPE

import psycopg
import pytest
from msgspec.structs import replace

from bench.peers import wrk
from bench.scale import shares
from bench.scale.cells import GROUPS, SHARE, STORES, Cell, Sizes, cells
from bench.scale.database import Use, watched
from bench.scale.measuring import Measured
from bench.scale.model import Bounds, bounds
from bench.scale.report import report
from tests.support.missing import cannot_try
from tests.support.stores import postgresql_server

SIZES = Sizes(accounts=[100], requests=[0, 1_000], shared_accounts=[1, 1_000])


def test_each_thing_grows_alone() -> None:
    """Workers, services, accounts and books, on either store; two services only where books can be shared."""
    sqlite = cells(["SQLite"], GROUPS, SIZES)
    unlimited = [cell for cell in cells(["PostgreSQL"], GROUPS, SIZES) if cell.share is None]
    assert [(cell.workers, cell.accounts, cell.requests) for cell in sqlite] == [
        (1, 1, 0),
        (2, 1, 0),
        (4, 1, 0),
        (1, 100, 0),
        (1, 10_000, 0),
        (1, 10_000, 1_000),
    ]
    assert len(unlimited) == len(sqlite) + 1
    assert Cell(store="PostgreSQL", services=2) in unlimited


def test_with_a_share_each_worker_is_asked_over_as_many_connections() -> None:
    """So two of them can serve twice what one does; without, all together have as many as one alone."""
    shared = cells(STORES, ["shares"], SIZES)
    assert {(cell.all_workers, cell.connections) for cell in shared} == {(1, 64), (2, 128), (4, 256)}
    assert {cell.store for cell in shared} == {"PostgreSQL"}
    assert {cell.connections for cell in cells(STORES, ["workers", "books"], SIZES)} == {64}


def test_services_are_added_up_and_the_slowest_answer_counts() -> None:
    """Each was asked by a load of its own."""
    loads = [wrk.Load(1_000, 1_500.0, 10.0, 30.0), wrk.Load(1_000, 1_400.0, 12.0, 25.0)]
    use = Use(seconds=2.0, cpu_s=1.0, wal_bytes=5_800_000, transactions=580, state_s={"lock": 0.29}, holding_s=5.8)
    cell = Cell(store="PostgreSQL", services=2, share=SHARE)
    text = report({cell: Measured(loads, 410.0, 100 * 1_024**2, use)}, "versions")
    assert "| PostgreSQL | two services, 0.25 core each | 1 | 1 | 0 | 2,900 | 12.0 | 30.0 | 410 | 100 |" in text
    assert "| 172 | 1,000 | 290 | 10.0 | 0.00 | 0.00 | 0.00 | 0.00 | 0.50 | 0.00 | 10.00 |" in text


def test_keys_are_read_from_a_file_beside_the_script(tmp_path: Path) -> None:
    """A script may hold 65,536 texts, and there are more keys."""
    script = tmp_path / "post.lua"
    wrk.write_script(script, {}, b"{}", keys=["trz_1", "trz_2"])
    assert (tmp_path / "post.keys").read_text() == "trz_1\ntrz_2"
    assert f'io.lines("{tmp_path}/post.keys")' in script.read_text()


def test_a_process_has_no_more_than_its_share() -> None:
    """Of a core, while the block runs; the group is gone afterwards."""
    try:
        shares.assert_possible()
    except shares.NoSharesError as error:
        cannot_try(f"Nobody can give shares here: {error}")
    code = (
        "import time\ninput()\nbegin, end = time.process_time(), time.monotonic() + 1\n"
        "while time.monotonic() < end: pass\nprint(time.process_time() - begin)"
    )
    before = set(shares.GROUPS.iterdir())
    with (
        subprocess.Popen([sys.executable, "-c", code], stdin=PIPE, stdout=PIPE, text=True) as busy,
        shares.each_having([busy.pid], 0.25),
    ):
        used_s = float(busy.communicate("begin\n")[0])
    assert 0.1 < used_s < 0.5
    assert set(shares.GROUPS.iterdir()) == before


def test_where_nobody_can_give_shares_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that is none of the kernel's, or none at all."""
    monkeypatch.setattr(shares, "GROUPS", tmp_path / "none")
    with pytest.raises(shares.NoSharesError, match="No such file"), shares.each_having([os.getpid()], 0.5):
        pass
    with shares.each_having([os.getpid()], None):
        pass


@pytest.mark.postgresql
def test_what_postgresql_did_is_counted_and_what_a_batch_waits_for_is_seen(tmp_path: Path) -> None:
    """One transaction, which waits for its worker for half a second."""
    with postgresql_server(tmp_path) as url, psycopg.connect(url, application_name="tarazu") as first:
        first.execute("CREATE TABLE rows AS SELECT 1 AS id")
        first.commit()
        with watched(url) as use:
            first.execute("UPDATE rows SET id = 2")
            time.sleep(0.5)
            first.commit()
    assert use.transactions == 1
    assert use.wal_bytes > 0
    assert use.state_s["worker"] == pytest.approx(0.5, rel=0.5)
    assert use.holding_s == pytest.approx(use.state_s["worker"], rel=0.2)
    assert use.state_s["lock"] == 0.0


def measured(per_second: float, *, locked: float = 0.5) -> Measured:
    """Make what was measured in a second, the rows locked for a part of it."""
    load = wrk.Load(int(per_second), per_second, 10.0, 30.0)
    use = Use(seconds=1.0, cpu_s=0.1, wal_bytes=1_000_000, transactions=50, holding_s=locked)
    return Measured([load], 400.0, 100 * 1_024**2, use)


def test_the_model_says_what_bounds_workers_together() -> None:
    """So many times one of them; but while a batch has the only account's row locked, all others wait."""
    four = Cell(store="PostgreSQL", workers=4, share=SHARE)
    assert bounds(four, measured(500.0)) == Bounds(workers=2_000.0, row=1_000.0)
    assert bounds(replace(four, accounts=1_000), measured(500.0)) == Bounds(workers=2_000.0, row=None)
    text = report({replace(four, workers=1): measured(500.0), four: measured(900.0)}, "versions")
    assert "| 1 x 4 | 1 | 2,000 | 1,000 | 900 | 0.90 | 1.80 |" in text


def test_cores_are_divided_as_worker_and_database_need_them() -> None:
    """400 us of each request at the worker, and 200 us at PostgreSQL."""
    text = report({Cell(store="PostgreSQL"): measured(500.0)}, "versions")
    assert "| 100 | 166,667 | 67 | 33 | 333 | 16,667 | 267 |" in text


def test_costs_are_divided_into_those_of_a_request_and_of_a_batch() -> None:
    """300 us for each request and 1,000 us for each batch, when 10 and 20 requests in one take 400 and 350 us each."""
    cells_ = {
        Cell(store="PostgreSQL"): replace(measured(500.0), cpu_us=400.0),
        Cell(store="PostgreSQL", workers=2): replace(measured(1_000.0), cpu_us=350.0),
    }
    assert "300 us at the worker and 0 us at PostgreSQL, and a batch 1,000 us and 2,000 us" in report(
        cells_, "versions"
    )
