"""Identifiers: of their form, and never twice."""

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from tarazu.service.identifiers import COMPLETION_PREFIX, completion_id_of, new_unique_part
from tests.support.values import NOON_MS

THREADS = 4
EACH = 5_000


def test_no_identifier_comes_twice_whoever_asks_at_once() -> None:
    """Threads share the random bytes that are kept, and no byte of them is given to two."""

    def make(_thread: int) -> list[str]:
        return [new_unique_part(NOON_MS) for _ in range(EACH)]

    with ThreadPoolExecutor(THREADS) as threads:
        made = [identifier for each in threads.map(make, range(THREADS)) for identifier in each]
    assert len(set(made)) == THREADS * EACH
    assert all(re.fullmatch(r"[0-9A-Za-z]{23}", identifier) for identifier in made)


def test_identifiers_of_one_instant_differ_in_what_is_random() -> None:
    """Their first characters tell the time, and are the same."""
    first, second = new_unique_part(NOON_MS), new_unique_part(NOON_MS)
    assert (first[:9], len(first)) == (second[:9], 23)
    assert first != second


def test_the_id_of_an_answer_leads_to_its_row() -> None:
    """Either id of a request is taken, and nothing else is changed."""
    unique = new_unique_part(NOON_MS)
    assert completion_id_of(f"req_{unique}") == completion_id_of(f"chatcmpl_{unique}") == COMPLETION_PREFIX + unique
    assert completion_id_of("acc_1") == "acc_1"


FORKING = """
import os
from tarazu.service.identifiers import new_unique_part

new_unique_part(0)
if os.fork():
    os.wait()
print(new_unique_part(0), flush=True)
"""


def test_a_forked_process_makes_others() -> None:
    """It forgets the random bytes that its parent has kept."""
    made = subprocess.run([sys.executable, "-c", FORKING], check=True, capture_output=True, text=True).stdout.split()
    assert len(set(made)) == 2
