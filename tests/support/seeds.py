"""The seed of all that is left to chance in the tests: the order, the moments, the worlds and the examples.

It is drawn from the commit's hash, so each commit tries new ones and everybody who runs it tries the same.
"""

import os
from functools import cache

import pytest

from tests.support.history import commit_hash

SEED_VARIABLE = "TARAZU_SEED"
"""A seed in the environment takes the place of the commit's."""
_DIGITS = 7
"""Of the hash: a number that a person can type."""


@cache
def session_seed() -> int:
    """Tell the seed of this run. Without any history it is 0."""
    given = os.environ.get(SEED_VARIABLE)
    if not given:
        return int((commit_hash() or "0")[:_DIGITS], 16)
    if not given.isdecimal():
        raise pytest.UsageError(f"{SEED_VARIABLE} is a number of digits alone, and not {given!r}.")
    return int(given)
