# ruff: noqa: INP001 - Python finds it by its folder
"""Let time.time_ns() tell the time in the file that SET_CLOCK names, in milliseconds: what the product's clock asks."""

import os
import time


def _time_ns() -> int:
    with open(os.environ["SET_CLOCK"]) as clock:  # noqa: PTH123 - before the product's own imports, as little as can be
        return int(clock.read()) * 1_000_000


time.time_ns = _time_ns
