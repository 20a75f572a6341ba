"""Measure Tarazu beside a bare proxy and others that do the like: on one core, with one backend, under one load.

    python -m bench.peers
    python -m bench.peers --quick --only nginx "Tarazu, SQLite"

All are started anew in each round and measured in turn, so that what else the machine does meets all alike. Contender
on core 0; nginx as the model server, PostgreSQL and wrk on core 1. After each turn Tarazu's books are audited.
"""

import http.client
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from msgspec import Struct
from rich.console import Console
from sqlalchemy import Engine

from bench.arguments import parser_of
from bench.balance import BooksDifferError, assert_balanced, charged_requests
from bench.figures import fsyncs_s, machine
from bench.peers import nginx, wrk
from bench.peers.contender import REPLY, Contender
from bench.peers.contenders import CONTENDERS, OTHERS, missing
from bench.peers.process_tree import OTHER_CORE, cpu_s, memory_bytes, on_cores, starting_on
from bench.peers.report import Result, report

FIRST_ANSWER_TIMEOUT_S = 60
POLL_S = 0.01
WARM_UP_ANSWERS_EACH, ANSWERS_EACH, LONGEST_S = 2, 3, 30
"""A cell is as long as every connection needs for so many answers, by the rate of a lone one, within the bound."""
HEADERS = {"Content-Type": "application/json"}

progress = Console(stderr=True)


class Size(Struct, frozen=True):
    """How much is measured."""

    connections: tuple[int, ...] = (1, 32, 64, 128)
    rounds: int = 2
    seconds: int = 5
    warm_up_s: int = 1


QUICK = Size(rounds=1, seconds=3)


def measure(names: Sequence[str], size: Size, folder: Path) -> str:
    """Measure them in turn, round after round, and write the report."""
    results = {name: Result() for name in names}
    fsync_s: list[float] = []
    with starting_on({OTHER_CORE}, nginx.fixed_reply(folder / "backend", REPLY)) as backend:
        for round_ in range(size.rounds):
            fsync_s += fsyncs_s(folder)
            for name in names if round_ % 2 == 0 else reversed(names):
                progress.print(f"round {round_ + 1} of {size.rounds}: {name} ...")
                at = folder / f"{round_} {name}".replace(" ", "-").replace(",", "")
                at.mkdir()
                began_s = time.monotonic()
                with CONTENDERS[name](at, backend.address) as contender:
                    _first_answer(contender)
                    results[name].start_s.append(time.monotonic() - began_s)
                    _measure(contender, results[name], size, at, may_stop=name in OTHERS)
    return report(results, fsync_s, [machine(), f"nginx {nginx.version()}", wrk.version()])


def _first_answer(contender: Contender) -> None:
    """Ask until there is a good answer."""
    until_s = time.monotonic() + FIRST_ANSWER_TIMEOUT_S
    url = urlsplit(contender.url)
    while True:
        status, text = _ask(url.netloc, url.path, contender)
        if status == http.HTTPStatus.OK:
            return
        if time.monotonic() >= until_s:
            raise wrk.LoadError(f"{contender.url} answers {status}: {text}")
        time.sleep(POLL_S)


def _ask(address: str, path: str, contender: Contender) -> tuple[int, str]:
    connection = http.client.HTTPConnection(address, timeout=FIRST_ANSWER_TIMEOUT_S)
    try:
        connection.request("POST", path, contender.body, {**HEADERS, **contender.headers})
        response = connection.getresponse()
        return response.status, response.read().decode("utf-8", "replace")
    except ConnectionError as error:
        return 0, repr(error)
    finally:
        connection.close()


def _measure(contender: Contender, result: Result, size: Size, folder: Path, *, may_stop: bool) -> None:
    """Ask over more and more connections, until it stops answering well if it may, and is an error if it may not."""
    script = folder / "post.lua"
    wrk.write_script(script, {**HEADERS, **contender.headers}, contender.body)
    result.does = contender.does
    answered = 1
    answer_s = 0.0
    for connections in size.connections:
        asked = min(connections, contender.most_connections or connections)
        round_s = math.ceil(answer_s * asked)
        warm_up_s = max(size.warm_up_s, WARM_UP_ANSWERS_EACH * round_s)
        seconds = max(size.seconds, ANSWERS_EACH * round_s)
        try:
            with on_cores({OTHER_CORE}):
                warm_up = wrk.drive(contender.url, script, connections=asked, seconds=min(warm_up_s, LONGEST_S))
                before_s = cpu_s(contender.pid)
                load = wrk.drive(contender.url, script, connections=asked, seconds=min(seconds, LONGEST_S))
        except wrk.LoadError as error:
            if not may_stop:
                raise
            progress.print(f"    does not answer well over {asked} connections any more: {error}")
            result.stopped_at.append(connections)
            break
        answered += warm_up.requests + load.requests
        answer_s = answer_s or 1 / load.per_second
        result.loads.setdefault(connections, []).append(load)
        result.cpu_us.setdefault(connections, []).append((cpu_s(contender.pid) - before_s) / load.requests * 1e6)
    result.memory_bytes = memory_bytes(contender.pid)
    if contender.engine is not None:
        _check(contender.engine, answered)


def _check(engine: Engine, answered: int) -> None:
    """Audit the books, in which every answer is charged; wrk leaves some requests before it counts their answers."""
    charged = charged_requests(engine)
    if charged < answered:
        raise BooksDifferError(f"{answered} requests were answered, and {charged} charged.")
    assert_balanced(engine)


def main() -> None:
    """Measure as the arguments say; print the report, and write it where it is asked for."""
    parser = parser_of("bench.peers", __doc__)
    parser.add_argument("--quick", action="store_true", help="three seconds for each cell, once")
    parser.add_argument("--only", nargs="+", choices=list(CONTENDERS), default=list(CONTENDERS), metavar="NAME")
    parser.add_argument("--output", type=Path, help="a file to write the report to")
    arguments = parser.parse_args()
    if lacking := missing(arguments.only):
        sys.exit("\n".join(f"{path} is missing: {how}" for path, how in lacking.items()))
    with TemporaryDirectory(prefix="tarazu-bench-") as name:
        text = measure(arguments.only, QUICK if arguments.quick else Size(), Path(name))
    print(text)
    if arguments.output:
        arguments.output.write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
