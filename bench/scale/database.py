"""PostgreSQL's part in what is measured: its processors' time, its log, its transactions, and what batches wait for."""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import psycopg
from msgspec import Struct

from bench.peers.process_tree import cpu_s

POLL_S = 0.02
STATES = ("begins", "worker", "computes", "disk", "lock", "other")
"""What a batch is found at: it is the worker's turn, before the first row is locked, and after it; PostgreSQL computes;
its commit is to be on disk; it waits for a row that another transaction has locked; anything else."""

_COUNTERS = """
SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint,
    pg_snapshot_xmax(pg_current_snapshot())::text::bigint, pg_backend_pid()
"""
_WAITS = """
SELECT CASE
    WHEN wait_event_type = 'Client' OR state LIKE 'idle in transaction%' THEN
        CASE WHEN backend_xid IS NULL THEN 'begins' ELSE 'worker' END
    WHEN wait_event_type IS NULL THEN 'computes'
    WHEN wait_event_type = 'Lock' THEN 'lock'
    WHEN lower(wait_event) LIKE 'wal%' THEN 'disk'
    ELSE 'other' END, backend_xid IS NOT NULL AND wait_event_type IS DISTINCT FROM 'Lock'
FROM pg_stat_activity
WHERE application_name = 'tarazu' AND state <> 'idle'
"""


class Use(Struct):
    """What PostgreSQL did in `seconds`: counted by itself and the kernel, the states' times from samples."""

    seconds: float = 0.0
    cpu_s: float = 0.0
    wal_bytes: int = 0
    transactions: int = 0
    state_s: dict[str, float] = {}
    holding_s: float = 0.0
    """The time for which transactions that did not wait for another had rows locked, one after the other or at once."""

    def per_batch_ms(self, seconds: float) -> float:
        """Divide a time among the transactions."""
        return seconds / self.transactions * 1_000


class _Counters(Struct, frozen=True):
    at_s: float
    cpu_s: float
    wal_bytes: int
    transactions: int


@contextmanager
def watched(server_url: str | None) -> Iterator[Use]:
    """Watch a server while the block runs; afterwards the block's value holds what it did. None is no server."""
    use = Use()
    if server_url is None:
        yield use
        return
    ended = Event()
    found: Counter[str] = Counter()
    with (
        psycopg.connect(server_url, autocommit=True) as counting,
        psycopg.connect(server_url, autocommit=True) as other,
    ):
        sampler = Thread(target=_sample, args=(other, ended, found), name="waits")
        before = _counters(counting)
        sampler.start()
        try:
            yield use
        finally:
            ended.set()
            sampler.join()
        after = _counters(counting)
    use.seconds = after.at_s - before.at_s
    use.cpu_s = after.cpu_s - before.cpu_s
    use.wal_bytes = after.wal_bytes - before.wal_bytes
    use.transactions = after.transactions - before.transactions
    part_s = use.seconds / found["samples"]
    use.state_s = {state: part_s * found[state] for state in STATES}
    use.holding_s = part_s * found["holding"]


def _counters(connection: psycopg.Connection[Any]) -> _Counters:
    row = connection.execute(_COUNTERS).fetchone()
    assert row is not None
    wal_bytes, transactions, pid = row
    return _Counters(time.monotonic(), cpu_s(_parent(pid)), wal_bytes, transactions)


def _parent(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text("utf-8")
    return int(status.split("\nPPid:")[1].split()[0])


def _sample(connection: psycopg.Connection[Any], ended: Event, found: Counter[str]) -> None:
    """Look at the connections again and again. The look itself takes a part of a millisecond of PostgreSQL."""
    while not ended.wait(POLL_S):
        found["samples"] += 1
        for state, is_holding in connection.execute(_WAITS).fetchall():
            found[state] += 1
            found["holding"] += is_holding
