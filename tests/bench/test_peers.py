"""The comparison with others: what its figures are read from, and how they are written. `make bench` is the run."""

import os
import subprocess
import sys
from pathlib import Path
from select import select

import pytest

from bench.peers import wrk
from bench.peers.contenders import LITELLM, NGINX, PROGRAMS, SQLITE, missing
from bench.peers.process_tree import cpu_s, memory_bytes, on_cores, processes, starting_on
from bench.peers.report import Result, report
from bench.peers.servers import ServerError, running
from tests.support.patience import PATIENCE_S
from tests.support.service import free_port

WELL = """Running 3s test @ http://127.0.0.1:8000/v1/chat/completions
  1 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   612.00us    1.10ms  40.51ms   99.02%
  Latency Distribution
     50%  612.00us
     75%    1.20ms
     90%    2.00ms
     99%    2.92s 
  5980 requests in 3.01s, 1.74MB read
Requests/sec:   1986.71
Transfer/sec:    592.60KB
"""  # noqa: W291 - wrk sets seconds with a space behind them


def test_what_wrk_prints_is_read_in_milliseconds() -> None:
    """Whatever unit it has chosen for each figure."""
    assert wrk.read(WELL) == wrk.Load(requests=5_980, per_second=1986.71, p50_ms=0.612, p99_ms=2_920.0)


@pytest.mark.parametrize(
    "line",
    [
        "  Non-2xx or 3xx responses: 1",
        "  Socket errors: connect 0, read 3, write 0, timeout 0",
        "  0 requests in 3.01s,",
    ],
)
def test_a_run_in_which_a_request_has_failed_has_no_figures(line: str) -> None:
    """Errors are quick: their rate would be taken for speed."""
    output = WELL.replace("  5980 requests in 3.01s,", line) if "requests in" in line else WELL + line + "\n"
    with pytest.raises(wrk.LoadError):
        wrk.read(output)


def test_a_server_is_seen_with_all_its_processes(tmp_path: Path) -> None:
    """On the core where it was started: their time, and their memory."""
    port = free_port()
    child = "kept = b'x' * 50_000_000; print(flush=True); import time; time.sleep(60)"
    code = (
        "import socket, subprocess, sys, time\n"
        f"child = subprocess.Popen([sys.executable, '-c', {child!r}], stdout=subprocess.PIPE)\n"
        "child.stdout.readline()\n"
        "while time.process_time() < 0.1: pass\n"
        f"listener = socket.create_server(('127.0.0.1', {port}))\n"
        "time.sleep(60)\n"
    )
    core = min(os.sched_getaffinity(0))
    server = running([sys.executable, "-c", code], port, log=tmp_path / "log")
    before = os.sched_getaffinity(0)
    with starting_on({core}, server) as process:
        assert os.sched_getaffinity(0) == before
        assert len(processes(process.pid)) == 2
        assert {frozenset(os.sched_getaffinity(pid)) for pid in processes(process.pid)} == {frozenset({core})}
        assert cpu_s(process.pid) >= 0.1
        assert memory_bytes(process.pid) > 50_000_000
        ends = [os.pidfd_open(pid) for pid in processes(process.pid)]
    for end in ends:
        assert select([end], [], [], PATIENCE_S)[0] == [end]
        os.close(end)


def test_a_server_that_does_not_start_says_why(tmp_path: Path) -> None:
    """With what it has written."""
    command = [sys.executable, "-c", "import sys; sys.exit('no such model')"]
    with pytest.raises(ServerError, match="no such model"), running(command, free_port(), log=tmp_path / "log"):
        pass


def test_the_affinity_comes_back_when_the_block_breaks() -> None:
    """Else all that is started later would run on one core."""
    before = os.sched_getaffinity(0)
    with pytest.raises(subprocess.SubprocessError), on_cores({min(before)}):
        raise subprocess.SubprocessError
    assert os.sched_getaffinity(0) == before


def test_the_report_compares_medians_at_64_connections() -> None:
    """With the bare proxy, and with each of the others that was measured."""

    def result(*rates: float) -> Result:
        loads = [wrk.Load(requests=100, per_second=rate, p50_ms=1.0, p99_ms=2.0) for rate in rates]
        return Result("something", {64: loads}, {64: [500.0] * len(rates)}, 120 * 1_024**2, [0.5])

    results = {NGINX: result(50_000), SQLITE: result(4_000, 5_000, 9_000), LITELLM: result(40, 50, 60)}
    text = report(results, [0.001, 0.002], ["this machine"])
    assert f"| {SQLITE} | 0.100 | 5,000 | 500 | 120 | 0.50 |" in text
    assert f"| {SQLITE} : LiteLLM |  | 100.0 |" in text
    assert "Portkey" not in text


def test_the_report_says_who_stopped_answering_and_gives_it_no_figures() -> None:
    """The others were measured, and stay."""
    loads = {64: [wrk.Load(requests=100, per_second=4_000, p50_ms=1.0, p99_ms=2.0)]}
    stopped = Result("nothing", start_s=[0.5], stopped_at=[64])
    results = {name: Result("something", loads, {64: [500.0]}, start_s=[0.5]) for name in (NGINX, SQLITE)}
    text = report({**results, LITELLM: stopped}, [0.001], ["this machine"])
    assert "| LiteLLM | - | - | - | 0 | 0.50 |" in text
    assert f"| {SQLITE} : LiteLLM |  | - |" in text
    assert "LiteLLM stopped answering well in 1 of the rounds: over 64 connections." in text


def test_what_is_missing_is_named_with_the_way_to_have_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Before anything is started."""
    monkeypatch.setitem(PROGRAMS, LITELLM, tmp_path / "litellm")
    monkeypatch.setattr("bench.peers.contenders.nginx.COMMAND", str(tmp_path / "nginx"))
    monkeypatch.setattr("bench.peers.contenders.wrk.COMMAND", str(tmp_path / "wrk"))
    assert missing([LITELLM]) == {
        str(tmp_path / "nginx"): "apt-get install nginx-light",
        str(tmp_path / "wrk"): "apt-get install wrk",
        str(tmp_path / "litellm"): "make bench",
    }
