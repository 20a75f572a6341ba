"""How much is tried of what is random, repeated or shown in many ways: one knob for all tests."""

import os
import re

import pytest

SCALE_VARIABLE = "TARAZU_TEST_SCALE"
_given = os.environ.get(SCALE_VARIABLE) or "1"
if not re.fullmatch(r"\d{1,6}(\.\d+)?", _given):
    raise pytest.UsageError(f"{SCALE_VARIABLE} is a number such as 0.1, 1 or 20, and not {_given!r}.")
SCALE = float(_given)
"""1 in `make test`; `make check` has less, `make nightly` and `make soak` have more."""
NIGHTLY = 20.0
EVERYTHING = SCALE >= NIGHTLY
"""Every test on both stores, and those that are marked `nightly`."""


def scaled(at_one: float, *, least: int = 1) -> int:
    """Tell how many there are at the scale in force of what there are `at_one` of at scale 1."""
    return max(least, round(at_one * SCALE))
