"""The benchmark of a worker's memory, with few requests."""

from pathlib import Path

import pytest

from bench.memory import Sample, Size, growth_bytes, report, watch
from bench.peers import nginx, wrk
from tests.support.missing import cannot_try


def sample(requests: int, worker: int) -> Sample:
    """Make one of which only the worker matters."""
    return Sample(requests, worker, worker_share=1, parent=1, parent_share=1, all_shares=2, file=1)


@pytest.mark.nightly
def test_a_small_run_looks_at_the_processes_before_and_after(tmp_path: Path) -> None:
    """The worker and its parent, each with what it alone has and what it shares."""
    if not all(Path(command).exists() for command in (nginx.COMMAND, wrk.COMMAND)):
        cannot_try("A run needs nginx and wrk: apt-get install nginx-light wrk.")
    before, *after = watch(tmp_path, Size(requests=10_000, every=1_000))
    assert before.requests == 0
    assert after[-1].requests >= 10_000
    for each in (before, *after):
        assert 0 < each.worker_share <= each.worker
        of_both = each.worker_share + each.parent_share
        assert of_both < each.all_shares < 2 * of_both  # the third is the process that forks workers
    assert "| 0 | before the first |" in report([before, *after], "versions")


def test_growth_is_told_of_what_comes_after_the_beginning() -> None:
    """What a service makes at its start and keeps is no growth."""
    samples = [sample(0, 50), sample(1_000, 90), sample(11_000, 100), sample(21_000, 110), sample(31_000, 120)]
    assert growth_bytes(samples) == pytest.approx(1_000)
