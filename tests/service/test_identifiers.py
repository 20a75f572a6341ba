"""Identifiers: of their form, and never twice."""

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from tarazu.service.identifiers import new_completion_id, new_request_id
from tests.support.values import NOON_MS

THREADS = 4
EACH = 5_000


def test_no_identifier_comes_twice_whoever_asks_at_once() -> None:
    """Threads share the random bytes that are kept, and no byte of them is given to two."""

    def make(_thread: int) -> list[str]:
        return [new_request_id() for _ in range(EACH)]

    with ThreadPoolExecutor(THREADS) as threads:
        made = [identifier for each in threads.map(make, range(THREADS)) for identifier in each]
    assert len(set(made)) == THREADS * EACH
    assert all(re.fullmatch(r"req_[0-9A-Za-z]{16}", identifier) for identifier in made)


def test_completions_of_one_instant_differ_in_what_is_random() -> None:
    """Their first characters tell the time, and are the same."""
    first, second = new_completion_id(NOON_MS), new_completion_id(NOON_MS)
    assert (first[:18], len(first)) == (second[:18], 32)
    assert first != second


FORKING = """
import os
from tarazu.service.identifiers import new_request_id

new_request_id()
if os.fork():
    os.wait()
print(new_request_id(), flush=True)
"""


def test_a_forked_process_makes_others() -> None:
    """It forgets the random bytes that its parent has kept."""
    made = subprocess.run([sys.executable, "-c", FORKING], check=True, capture_output=True, text=True).stdout.split()
    assert len(set(made)) == 2
