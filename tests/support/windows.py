"""The places that requests have taken in the minute windows, read from the books."""

import time
from collections.abc import Callable
from typing import TypeVar

from msgspec import Struct

from tests.support.service import Customer, RunningService

SECONDS_PER_MINUTE = 60
MINUTES_MAX = 3

T = TypeVar("T")


class Places(Struct, frozen=True):
    """Places taken in the last minute in which one was: of the account, and of the key."""

    account: int
    key: int


NONE_TAKEN = Places(0, 0)
ONE_TAKEN = Places(1, 1)


def places(service: RunningService, customer: Customer) -> Places:
    """Count the places of a customer's account and key."""
    keys = {key.id: key for key in service.provisioning.keys(customer.account_id)}
    return Places(service.account(customer).window.taken, keys[customer.key_id].window.taken)


def within_one_minute(scenario: Callable[[], T]) -> T:
    """Run a scenario; when the minute has turned under it, run it again, since its windows have turned too.

    The scenario makes its own customers, and leaves it to the caller to judge what it answers with.
    """
    for _ in range(MINUTES_MAX):
        minute = _minute()
        outcome = scenario()
        if _minute() == minute:
            return outcome
    raise AssertionError("The scenario takes longer than a minute.")


def _minute() -> int:
    return time.time_ns() // (SECONDS_PER_MINUTE * 1_000_000_000)
