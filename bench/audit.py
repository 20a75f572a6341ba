"""Time the audit on large books, then break one row for each of its rules and see that it names them all.

    python -m bench.audit                                   # 10 million requests on SQLite, in a temporary folder
    python -m bench.audit --requests 1000000 --accounts 1
    python -m bench.audit --database-url postgresql://…     # in an empty database

The audit runs in a process of its own, so that the memory is its alone.
"""

import shutil
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct
from sqlalchemy import Engine, text

from bench.arguments import parser_of
from bench.books import Size, fill, take_your_time
from tarazu.cli.clock import system_clock
from tarazu.service.auditing import audit_books
from tarazu.store.audit import AuditReport
from tarazu.store.engine import open_engine, transaction
from tarazu.store.migrate import upgrade

KIB, MIB, GB = 1_024, 1_024 * 1_024, 1_000_000_000
BYTES_PER_REQUEST = 350
"""About what a request takes on disk with its indexes, the journal and the audit's scratch file."""


class Step(Struct):
    """What a step of the audit took. On a busy machine the processor's time tells more than the clock's."""

    seconds: float = 0.0
    processor_seconds: float = 0.0


class Measured(Struct, frozen=True):
    """One audit: what each step took, and what it needed; on PostgreSQL processor and memory are the client's alone."""

    report: AuditReport
    steps: dict[str, Step]
    peak_memory_bytes: int
    scratch_bytes: int


class Fault(Struct, frozen=True):
    """A row to break, found as account_id, id and period, and the figure in which the audit must show it."""

    figure: str
    find: str
    change: str


FAULTS = (
    Fault(
        "used",
        "SELECT id, id, period FROM accounts ORDER BY id LIMIT 1",
        "UPDATE accounts SET used = used + 1 WHERE id = :id",
    ),
    Fault(
        "balance",
        "SELECT id, id, period FROM accounts ORDER BY id DESC LIMIT 1",
        "UPDATE accounts SET balance = balance - 1 WHERE id = :id",
    ),
    Fault(
        "daily usage: credits",
        "SELECT account_id, key_id, day FROM daily_usage ORDER BY account_id, day, key_id LIMIT 1",
        "UPDATE daily_usage SET credits = credits + 1 WHERE account_id = :account_id AND key_id = :id AND day = :period"
        " AND model_id = (SELECT max(model_id) FROM daily_usage"
        " WHERE account_id = :account_id AND key_id = :id AND day = :period)",
    ),
    Fault(
        "overdue hold: deadline_ms",
        "SELECT account_id, id, period FROM requests WHERE state = 'held' LIMIT 1",
        "UPDATE requests SET deadline_ms = 1 WHERE id = :id AND period = :period",
    ),
    Fault(
        "idempotency key without a reply: held requests",
        "SELECT account_id, request_id, period FROM idempotency_keys ORDER BY request_id LIMIT 1",
        "UPDATE idempotency_keys SET reply = NULL WHERE request_id = :id AND period = :period",
    ),
    Fault(
        "request in a period before its day",
        "SELECT account_id, id, period FROM requests WHERE state = 'released' LIMIT 1",
        "UPDATE requests SET period = '2000-01' WHERE id = :id AND period = :period",
    ),
    Fault(
        "requests with a key that is not the account's",
        "SELECT account_id, id, period FROM requests WHERE state = 'swept' LIMIT 1",
        "INSERT INTO accounts (id, name, status, period, used, balance, window_minute, window_taken, created_at_ms)"
        " VALUES ('acc_stray', '', 'active', '2000-01', 0, 0, 0, 0, 0);"
        "INSERT INTO keys (id, account_id, name, digest, window_minute, window_taken, created_at_ms)"
        " VALUES ('key_stray', 'acc_stray', '', '', 0, 0, 0);"
        "UPDATE requests SET key_id = 'key_stray' WHERE id = :id AND period = :period",
    ),
)


def measure(database_url: str) -> Measured:
    """Audit the books once."""
    told: list[tuple[str, float, float]] = []
    scratch_bytes = 0

    def tell(step: str, _done: float | None) -> None:
        nonlocal scratch_bytes
        scratch_bytes = max(scratch_bytes, _unnamed_bytes())
        told.append((step, time.monotonic(), time.process_time()))

    engine = open_engine(database_url)
    tell("adding up the daily usage", None)
    report = audit_books(engine, system_clock, tell)
    tell("", None)
    engine.dispose()
    steps: dict[str, Step] = {}
    for (name, start_s, processor_start_s), (_, end_s, processor_end_s) in pairwise(told):
        step = steps.setdefault(name, Step())
        step.seconds += end_s - start_s
        step.processor_seconds += processor_end_s - processor_start_s
    return Measured(report, steps, _peak_memory_bytes(), scratch_bytes)


def scan(engine: Engine) -> float:
    """Tell how many seconds one look at each request takes; no index has the credits."""
    with transaction(engine, read_only=True) as connection:
        if connection.dialect.name == "postgresql":
            take_your_time(connection)
        started_s = time.monotonic()
        connection.exec_driver_sql("SELECT count(*), sum(credits) FROM requests").one()
        return time.monotonic() - started_s


def break_one_row(engine: Engine, fault: Fault) -> str:
    """Change a row behind the service's back; answer with its account."""
    with transaction(engine) as connection:
        account_id, id_, period = connection.execute(text(fault.find)).one()
        values = {"account_id": account_id, "id": id_, "period": period}
        for statement in map(text, fault.change.split(";")):
            changed = connection.execute(statement, {name: values[name] for name in statement.compile().params})
            assert changed.rowcount == 1, fault.figure
    return str(account_id)


def main() -> None:
    """Run the benchmark as the arguments say; the exit status is 1 when the audit is wrong."""
    parser = parser_of("bench.audit", __doc__)
    parser.add_argument("--requests", type=int, default=10_000_000)
    parser.add_argument("--accounts", type=int, default=10_000)
    parser.add_argument("--database-url", help="an empty database; without it a SQLite file in a temporary folder")
    arguments = parser.parse_args()
    size = Size(requests=arguments.requests, accounts=arguments.accounts)
    with _database(arguments.database_url, size) as url:
        sys.exit(0 if run(url, size) else 1)


def run(url: str, size: Size) -> bool:
    """Make the books and audit them twice: right, and with a broken row for each rule."""
    engine = open_engine(url)
    started_s = time.monotonic()
    upgrade(engine)
    fill(engine, size)
    print(f"{size.requests:,} requests of {size.accounts:,} accounts made in {time.monotonic() - started_s:.0f} s")
    print(f"one plain scan: {scan(engine):.2f} s, again: {(scan_s := scan(engine)):.2f} s")

    right = _measure_apart(url)
    total = Step()
    for name, step in right.steps.items():
        total.seconds += step.seconds
        total.processor_seconds += step.processor_seconds
        print(f"{name:<40}{step.seconds:>8.2f} s{step.processor_seconds:>8.2f} s of processor")
    print(f"{'in total':<40}{total.seconds:>8.2f} s{total.processor_seconds:>8.2f} s of processor")
    print(f"{size.requests / total.seconds:,.0f} requests/s, {total.seconds / scan_s:.0f} times the scan")
    print(f"{right.peak_memory_bytes / MIB:.0f} MiB of memory, {right.scratch_bytes / MIB:.0f} MiB of scratch file")
    print(f"{right.report.found:,} differences found in books that balance")

    expected = {(break_one_row(engine, fault), fault.figure) for fault in FAULTS}
    engine.dispose()
    broken = _measure_apart(url).report
    print(f"{broken.found:,} differences found after {len(FAULTS)} rows were broken:")
    for each in broken.differences:
        print(f"  {each.account_id} {each.figure} {each.subject}: booked {each.booked:,}, computed {each.computed:,}")
    named = {(each.account_id, each.figure) for each in broken.differences}
    is_right = (right.report.found, broken.found, named) == (0, len(FAULTS), expected)
    print(
        "The audit is right." if is_right else f"THE AUDIT IS WRONG: it should have named {sorted(expected - named)}."
    )
    return is_right


@contextmanager
def _database(url: str | None, size: Size) -> Iterator[str]:
    if url is not None:
        yield url
        return
    with TemporaryDirectory(prefix="tarazu-bench-") as folder:
        needed, free = size.requests * BYTES_PER_REQUEST, shutil.disk_usage(folder).free
        print(f"About {needed / GB:.1f} GB of disk in {folder}; {free / GB:.0f} GB are free")
        if free < needed:
            sys.exit("There is too little room; TMPDIR may name another folder.")
        yield f"sqlite:///{folder}/tarazu.db"
        used = sum(file.stat().st_size for file in Path(folder).iterdir())
        print(f"{used / GB:.1f} GB of disk were used by the books")


def _measure_apart(url: str) -> Measured:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(measure, url).result()


def _peak_memory_bytes() -> int:
    """Tell the most memory that this process has had. What getrusage tells is at least what its parent had."""
    status = Path("/proc/self/status").read_text("ascii")
    return int(status.split("VmHWM:")[1].split()[0]) * KIB


def _unnamed_bytes() -> int:
    """Tell the size of this process's files that have no name any more: the audit's scratch file is one."""
    files = [Path(f"/proc/self/fd/{number.name}") for number in Path("/proc/self/fd").iterdir()]
    return sum(file.stat().st_size for file in files if file.is_symlink() and "(deleted)" in str(file.readlink()))


if __name__ == "__main__":
    main()
