"""The one place that asks the machine for the time. Everybody else is handed a `Clock`; the linter holds them to it.

Durations and time-outs are measured by `time.monotonic`, which is no time of day.
"""

import time

NANOSECONDS_PER_MILLISECOND = 1_000_000


def system_clock() -> int:
    """Tell the time, in milliseconds since the epoch. A `tarazu.domain.calendar.Clock`."""
    return time.time_ns() // NANOSECONDS_PER_MILLISECOND
