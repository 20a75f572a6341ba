"""Somebody who guesses passwords, fast and from one place: callers of the API do not notice."""

import statistics
import threading
import time
from collections import Counter

from tarazu.domain.attempts import BY_ADDRESS
from tests.support.books import sqlite_only
from tests.support.service import Customer, RunningService
from tests.support.visitor import Visitor

ATTEMPTS_PER_SECOND = 20
ATTEMPTS = 60
REQUESTS = 60
"""How many latencies make a median."""
RATIO_MAX = 3
SLACK_S = 0.01


def _latency_s(service: RunningService, customer: Customer) -> float:
    begin_s = time.perf_counter()
    assert service.chat(customer).status == 200
    return time.perf_counter() - begin_s


@sqlite_only
def test_twenty_guesses_a_second_do_not_slow_the_api(service: RunningService) -> None:
    """A completion takes about as long as without them; after the first few hardly any is compared."""
    customer = service.customer()
    before_s = statistics.median(_latency_s(service, customer) for _ in range(REQUESTS))
    statuses: Counter[int] = Counter()
    spent_s: list[float] = []

    def guess() -> None:
        visitor, begin_s = Visitor(service), time.monotonic()
        for number in range(ATTEMPTS):
            time.sleep(max(0.0, begin_s + number / ATTEMPTS_PER_SECOND - time.monotonic()))
            page = visitor.send("/panel/sign-in", email=f"nobody{number}@example.com", password=f"a guess, {number}")
            statuses[page.status] += 1
        spent_s.append(time.monotonic() - begin_s)

    guessing = threading.Thread(target=guess)
    guessing.start()
    latencies_s = []
    while guessing.is_alive():
        latencies_s.append(_latency_s(service, customer))
    guessing.join()
    assert statistics.median(latencies_s) < before_s * RATIO_MAX + SLACK_S
    assert set(statuses) <= {422, 429}
    assert statuses[422] <= BY_ADDRESS.failures_max + spent_s[0] * 1_000 // BY_ADDRESS.pace_ms + 1, statuses
    assert sum(statuses.values()) == ATTEMPTS
