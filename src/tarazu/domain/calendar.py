"""Turn an instant into the minutes, days and months that limits and books are kept by.

An instant is a whole number of milliseconds since the Unix epoch, always handed in.
"""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache

from msgspec import Struct

Clock = Callable[[], int]
"""Tells the instant that it is now. The command that a process begins with makes it; all others are handed it."""
MILLISECONDS_PER_SECOND = 1_000
MILLISECONDS_PER_MINUTE = 60_000
MILLISECONDS_PER_HOUR = 3_600_000
MILLISECONDS_PER_DAY = 86_400_000


class DayRange(Struct, frozen=True):
    """Calendar days, YYYY-MM-DD, from the first to the last."""

    first: str
    last: str

    @property
    def days(self) -> list[str]:
        """List them, the earliest first."""
        number = (date.fromisoformat(self.last) - date.fromisoformat(self.first)).days + 1
        return days_until(self.last, number)


def minute_of(now_ms: int) -> int:
    """Count the whole minutes since the epoch: the number of the rate-limit window that `now_ms` is in."""
    return now_ms // MILLISECONDS_PER_MINUTE


def minute_end_ms(minute: int) -> int:
    """Tell the instant at which the window of that minute ends."""
    return (minute + 1) * MILLISECONDS_PER_MINUTE


def hour_of(now_ms: int) -> int:
    """Count the whole hours since the epoch."""
    return now_ms // MILLISECONDS_PER_HOUR


def day_of(now_ms: int, zone: tzinfo) -> str:
    """Tell the calendar day, YYYY-MM-DD, that it is in `zone`."""
    return _day_in(minute_of(now_ms), zone)


def period_of(now_ms: int, zone: tzinfo) -> str:
    """Tell the billing period, YYYY-MM: the calendar month that it is in `zone`."""
    return day_of(now_ms, zone)[: len("YYYY-MM")]


def periods_from(period: str, number: int) -> list[str]:
    """List a period and those after it, `number` in all: 2026-12, 2027-01 and so on."""
    first = _months_of(period)
    return [_period_at(months) for months in range(first, first + number)]


def periods_until(period: str, number: int) -> list[str]:
    """List a period and those before it, `number` in all: 2027-01, 2026-12 and so on."""
    last = _months_of(period)
    return [_period_at(months) for months in range(last, last - number, -1)]


def next_period_day(period: str) -> str:
    """Tell the first day, YYYY-MM-DD, of the period after one."""
    return f"{periods_from(period, 2)[1]}-01"


def days_until(day: str, number: int) -> list[str]:
    """List the days that end with one, `number` in all, the earliest first."""
    last = date.fromisoformat(day)
    return [(last - timedelta(days=back)).isoformat() for back in reversed(range(number))]


def day_after(day: str) -> str:
    """Tell the day after one."""
    return (date.fromisoformat(day) + timedelta(days=1)).isoformat()


def day_start_ms(day: str, zone: tzinfo) -> int:
    """Tell the instant at which a day begins in `zone`."""
    start = datetime.combine(date.fromisoformat(day), datetime.min.time(), zone)
    return round(start.timestamp()) * MILLISECONDS_PER_SECOND


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


@lru_cache(maxsize=16)
def _day_in(minute: int, zone: tzinfo) -> str:
    """Tell the day of a minute: in no time zone of today does one begin within a minute."""
    return _local(minute * MILLISECONDS_PER_MINUTE, zone).strftime("%Y-%m-%d")


def _months_of(period: str) -> int:
    year, month = map(int, period.split("-"))
    return 12 * year + month - 1


def _period_at(months: int) -> str:
    return f"{months // 12:04}-{months % 12 + 1:02}"


def _local(instant_ms: int, zone: tzinfo) -> datetime:
    return datetime.fromtimestamp(instant_ms // MILLISECONDS_PER_SECOND, zone)
