"""Turn an instant into the minutes, days and months that limits and books are kept by.

An instant is a whole number of milliseconds since the Unix epoch, always handed in.
"""

from collections.abc import Callable
from datetime import UTC, datetime, tzinfo

Clock = Callable[[], int]
"""Tells the instant that it is now. The command that a process begins with makes it; all others are handed it."""
MILLISECONDS_PER_SECOND = 1_000
MILLISECONDS_PER_MINUTE = 60_000
MILLISECONDS_PER_DAY = 86_400_000


def minute_of(now_ms: int) -> int:
    """Count the whole minutes since the epoch: the number of the rate-limit window that `now_ms` is in."""
    return now_ms // MILLISECONDS_PER_MINUTE


def minute_end_ms(minute: int) -> int:
    """Tell the instant at which the window of that minute ends."""
    return (minute + 1) * MILLISECONDS_PER_MINUTE


def day_of(now_ms: int, zone: tzinfo) -> str:
    """Tell the calendar day, YYYY-MM-DD, that it is in `zone`."""
    return _local(now_ms, zone).strftime("%Y-%m-%d")


def period_of(now_ms: int, zone: tzinfo) -> str:
    """Tell the billing period, YYYY-MM: the calendar month that it is in `zone`."""
    return _local(now_ms, zone).strftime("%Y-%m")


def periods_from(period: str, number: int) -> list[str]:
    """List a period and those after it, `number` in all: 2026-12, 2027-01 and so on."""
    year, month = map(int, period.split("-"))
    months = range(12 * year + month - 1, 12 * year + month - 1 + number)
    return [f"{months_since // 12:04}-{months_since % 12 + 1:02}" for months_since in months]


def earliest_ms(period: str) -> int:
    """Tell an instant before which it is that period in no time zone: those are less than a day apart from UTC."""
    year, month = map(int, period.split("-"))
    start_s = round(datetime(year, month, 1, tzinfo=UTC).timestamp())
    return start_s * MILLISECONDS_PER_SECOND - MILLISECONDS_PER_DAY


def seconds_until(instant_ms: int, now_ms: int) -> int:
    """Count whole seconds until `instant_ms`, rounded up; at least 1, as the headers that carry it promise."""
    return max(1, -((now_ms - instant_ms) // MILLISECONDS_PER_SECOND))


def iso_time(instant_ms: int) -> str:
    """Write an instant as ISO 8601 in UTC, to the second: 2026-02-28T23:59:00Z."""
    return _local(instant_ms, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _local(instant_ms: int, zone: tzinfo) -> datetime:
    return datetime.fromtimestamp(instant_ms // MILLISECONDS_PER_SECOND, zone)
