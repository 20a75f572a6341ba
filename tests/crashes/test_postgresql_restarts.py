"""PostgreSQL crashes and comes back under load: the service says so at once, waits for nothing, and serves again."""

import os
import signal
import time
from pathlib import Path
from random import Random

import pytest

from tests.support.at_once import wait_until
from tests.support.backend import ScriptedBackend
from tests.support.load import Load
from tests.support.processes import KIB, peak_bytes, workers
from tests.support.scale import scaled
from tests.support.service import RunningService
from tests.support.stores import PostgresqlStore, restartable_server

pytestmark = pytest.mark.postgresql

RESTARTS = scaled(0.5, least=3)
PROBES = 5
REPLIES_BEFORE = 10
AT_ONCE_S = 2
"""An answer without the books must come in this time, on a machine with other work."""
HEALTHY_S = 5
MEMORY_GROWTH_MAX = 32 * KIB * KIB


def test_a_database_that_crashes_under_load(backend: ScriptedBackend, random: Random, tmp_path: Path) -> None:
    """Away: 503 at once, no memory taken. Back: served within 5 s by the same processes. Each reply is charged once."""
    with restartable_server(tmp_path) as server:
        url = PostgresqlStore(server.url).new_books(tmp_path)
        with RunningService(tmp_path, backend.url, server="workers = 2", database_url=url) as service:
            pids = workers(service)
            load = Load(service, backend, random)
            probe = service.customer("large")
            with load:
                peaks = []
                for _ in range(RESTARTS):
                    load.wait_for_replies(REPLIES_BEFORE)
                    peaks.append(max(map(peak_bytes, pids)))
                    server.crash()
                    for _ in range(PROBES):
                        asked_s = time.monotonic()
                        answer = service.chat(probe)
                        assert (answer.status, answer.code) == (503, "system_stopped")
                        assert time.monotonic() - asked_s < AT_ONCE_S
                    server.start()
                    load.wait_for_replies(1, timeout_s=HEALTHY_S)
                    assert service.get("/health").status == 200
            assert workers(service) == pids
            assert max(map(peak_bytes, pids)) - peaks[1] < MEMORY_GROWTH_MAX
            service.engine.dispose()  # the tests' own connections have broken too
            load.assert_books_exact(charged_unseen=0)
            assert load.cut == 0


def test_a_worker_that_dies_meanwhile_is_replaced_by_one_that_waits(backend: ScriptedBackend, tmp_path: Path) -> None:
    """The service stays, with the other worker, for as long as the database is away; then both serve."""
    with restartable_server(tmp_path, in_memory=True) as server:
        url = PostgresqlStore(server.url).new_books(tmp_path)
        with RunningService(tmp_path, backend.url, server="workers = 2", database_url=url) as service:
            customer, (dies, other) = service.customer(), workers(service)
            server.crash()
            os.kill(dies, signal.SIGKILL)
            service.logged("database_awaited")
            server.start()
            wait_until(lambda: {service.chat(customer).status for _ in range(PROBES)} == {200})
            assert other in workers(service)
            assert len(workers(service)) == 2
            assert service.run("reload").returncode == 0
            service.engine.dispose()
