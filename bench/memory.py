"""Ask one worker for a million completions, and watch the memory of its processes.

    python -m bench.memory
    python -m bench.memory --quick

Over HTTP, on SQLite, from a model server that answers at once, asked for by wrk over 64 connections. The service has
core 0 for itself, the model server and wrk have core 1. Between two loads the processes are looked at, and at the end
the books are audited.
"""

from collections.abc import Sequence
from pathlib import Path
from statistics import linear_regression
from tempfile import TemporaryDirectory

from msgspec import Struct
from rich.console import Console

from bench.arguments import parser_of
from bench.asking import PLAN, catalogue, conversation
from bench.balance import BooksDifferError, assert_balanced, charged_requests
from bench.figures import MIB, machine, table
from bench.peers import nginx, wrk
from bench.peers.process_tree import (
    CORE,
    OTHER_CORE,
    on_cores,
    processes,
    resident_bytes,
    share_bytes,
    starting_on,
    workers,
)
from tests.support.backend import completion
from tests.support.service import CHAT, RunningService

CONNECTIONS = 64
MODEL = "small"
SETTLED = 0.1
"""The part of the requests after which a service has made all that it keeps."""

progress = Console(stderr=True)


class Size(Struct, frozen=True):
    """How many requests, and after how many of them the memory is looked at; about, since wrk goes by time."""

    requests: int = 1_000_000
    every: int = 50_000


QUICK = Size(requests=100_000, every=10_000)


class Sample(Struct, frozen=True):
    """What the processes had after so many requests, in bytes. A share counts what is shared with others by parts."""

    requests: int
    worker: int
    worker_share: int
    parent: int
    parent_share: int
    all_shares: int
    file: int


def watch(folder: Path, size: Size) -> list[Sample]:
    """Run the service, and look at it before the first request, after the first second, and then again and again.

    Raises:
        BooksDifferError: the books do not balance at the end, or lack a charge.
    """
    with starting_on({OTHER_CORE}, nginx.fixed_reply(folder / "backend", completion())) as backend:
        service = RunningService(folder, "", catalogue=catalogue({MODEL: f"http://{backend.address}/v1"}))
        with starting_on({CORE}, service):
            customer = service.customer(PLAN)
            script = folder / "post.lua"
            wrk.write_script(
                script,
                {"Content-Type": "application/json", "Authorization": customer.bearer},
                conversation(MODEL),
            )
            samples = _samples(service, script, size)
            charged = charged_requests(service.engine)
            if charged < samples[-1].requests:
                raise BooksDifferError(f"{samples[-1].requests} requests were answered, and {charged} charged.")
            assert_balanced(service.engine)
    return samples


def _samples(service: RunningService, script: Path, size: Size) -> list[Sample]:
    samples = [_sample(service, 0)]
    seconds = 1
    while (done := samples[-1].requests) < size.requests:
        with on_cores({OTHER_CORE}):
            url = f"http://127.0.0.1:{service.port}{CHAT}"
            load = wrk.drive(url, script, connections=CONNECTIONS, seconds=seconds)
        samples.append(_sample(service, done + load.requests))
        progress.print(f"{samples[-1].requests:,} of {size.requests:,}: {_mib(samples[-1].worker)} MiB ...")
        seconds = max(1, round(min(size.every, size.requests - samples[-1].requests) / load.per_second))
    return samples


def _sample(service: RunningService, requests: int) -> Sample:
    parent = service.process.pid
    (worker,) = workers(parent)
    shares = {each: share_bytes(each) for each in processes(parent)}
    return Sample(
        requests=requests,
        worker=resident_bytes(worker),
        worker_share=shares[worker],
        parent=resident_bytes(parent),
        parent_share=shares[parent],
        all_shares=sum(shares.values()),
        file=(service.folder / "tarazu.db").stat().st_size,
    )


def growth_bytes(samples: Sequence[Sample]) -> float:
    """Tell by how much the worker grows in a million requests, on the line that fits best from `SETTLED` on."""
    settled = [sample for sample in samples if sample.requests >= SETTLED * samples[-1].requests]
    line = linear_regression([sample.requests for sample in settled], [sample.worker for sample in settled])
    return line.slope * 1_000_000


def report(samples: Sequence[Sample], versions: str) -> str:
    """Write the table, what follows from it, and what it was measured with."""
    head = ["requests", "", "worker, RSS", "worker, PSS", "parent, RSS", "parent, PSS", "all, PSS", "the file"]
    rows = [
        [
            f"{sample.requests:,}",
            "before the first" if sample.requests == 0 else "",
            *map(
                _mib,
                (
                    sample.worker,
                    sample.worker_share,
                    sample.parent,
                    sample.parent_share,
                    sample.all_shares,
                    sample.file,
                ),
            ),
        ]
        for sample in samples
    ]
    growth = growth_bytes(samples) / MIB
    return (
        f"{table(head, rows)}\n\nAll in MiB. From {SETTLED:.0%} of the requests on the worker grows by "
        f"{growth:.1f} MiB in a million requests.\n\nMeasured with {versions}."
    )


def _mib(number: int) -> str:
    return f"{number / MIB:,.1f}"


def main() -> None:
    """Measure as the arguments say; print the report, and write it where it is asked for."""
    parser = parser_of("bench.memory", __doc__)
    parser.add_argument("--quick", action="store_true", help="100,000 requests")
    parser.add_argument("--output", type=Path, help="a file to write the report to")
    arguments = parser.parse_args()
    with TemporaryDirectory(prefix="tarazu-bench-") as name:
        samples = watch(Path(name), QUICK if arguments.quick else Size())
    text = report(samples, f"{machine()}; nginx {nginx.version()}; {wrk.version()}")
    print(text)
    if arguments.output:
        arguments.output.write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
