"""Minutes, days and months: what limits and books are kept by."""

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.domain.calendar import (
    day_after,
    day_of,
    day_start_ms,
    days_until,
    earliest_ms,
    iso_time,
    minute_end_ms,
    minute_of,
    period_of,
    periods_from,
    periods_until,
    seconds_until,
)
from tests.support.values import instant_ms

ZONES = [
    "UTC",
    "Asia/Tehran",
    "America/New_York",
    "Asia/Kathmandu",
    "Pacific/Kiritimati",
    "Pacific/Pago_Pago",
    "Australia/Lord_Howe",
]
instants = st.integers(instant_ms("2024-01-01"), instant_ms("2100-01-01"))


@pytest.fixture(params=["UTC", "Asia/Tehran", "America/New_York", "Pacific/Kiritimati"])
def process_zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Run the process in a time zone."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("zone", "instant", "day"),
    [
        ("UTC", "2026-01-31T23:59:59.999", "2026-01-31"),
        ("UTC", "2026-02-01T00:00:00", "2026-02-01"),
        ("UTC", "2028-02-29T00:00:00", "2028-02-29"),
        ("UTC", "2028-02-29T23:59:59.999", "2028-02-29"),
        ("UTC", "2028-03-01T00:00:00", "2028-03-01"),
        ("UTC", "2027-02-28T23:59:59.999", "2027-02-28"),
        ("UTC", "2027-03-01T00:00:00", "2027-03-01"),
        ("UTC", "2100-02-28T23:59:59.999", "2100-02-28"),
        ("UTC", "2100-03-01T00:00:00", "2100-03-01"),
        ("UTC", "2026-12-31T23:59:59.999", "2026-12-31"),
        ("UTC", "2027-01-01T00:00:00", "2027-01-01"),
        ("Asia/Tehran", "2026-01-31T20:29:59.999", "2026-01-31"),
        ("Asia/Tehran", "2026-01-31T20:30:00", "2026-02-01"),
        ("America/New_York", "2026-02-01T04:59:59.999", "2026-01-31"),
        ("America/New_York", "2026-02-01T05:00:00", "2026-02-01"),
        # Summer time ends on 2026-11-01, two hours after the month has begun.
        ("America/New_York", "2026-11-01T03:59:59.999", "2026-10-31"),
        ("America/New_York", "2026-11-01T04:00:00", "2026-11-01"),
        ("America/New_York", "2026-11-02T04:59:59.999", "2026-11-01"),
        ("Pacific/Kiritimati", "2026-12-31T09:59:59.999", "2026-12-31"),
        ("Pacific/Kiritimati", "2026-12-31T10:00:00", "2027-01-01"),
        ("Pacific/Pago_Pago", "2027-01-01T10:59:59.999", "2026-12-31"),
        ("Pacific/Pago_Pago", "2027-01-01T11:00:00", "2027-01-01"),
    ],
)
def test_a_day_and_its_month_turn_at_local_midnight(zone: str, instant: str, day: str) -> None:
    """The calendar is that of the configured time zone, also in a leap year and where summer time ends."""
    now_ms = instant_ms(instant)
    assert day_of(now_ms, ZoneInfo(zone)) == day
    assert period_of(now_ms, ZoneInfo(zone)) == day[:7]


@given(st.integers(2024, 2099), st.integers(1, 12), st.sampled_from(ZONES))
def test_a_month_begins_with_its_first_millisecond(year: int, month: int, zone: str) -> None:
    """At local midnight of the first it is the new month, a millisecond before it is the old one."""
    start = datetime(year, month, 1, tzinfo=ZoneInfo(zone))
    start_ms = round(start.timestamp() * 1_000)
    before = f"{year}-{month - 1:02}" if month > 1 else f"{year - 1}-12"
    assert period_of(start_ms, start.tzinfo or UTC) == f"{year}-{month:02}"
    assert period_of(start_ms - 1, start.tzinfo or UTC) == before


@given(instants, instants, st.sampled_from(ZONES))
def test_later_instants_have_no_earlier_period(one: int, other: int, zone: str) -> None:
    """Periods and days sort as text in the order of time: the books compare them so."""
    earlier, later = sorted((one, other))
    assert period_of(earlier, ZoneInfo(zone)) <= period_of(later, ZoneInfo(zone))
    assert day_of(earlier, ZoneInfo(zone)) <= day_of(later, ZoneInfo(zone))


@given(instants, st.sampled_from(ZONES))
def test_a_period_is_the_month_of_its_day(now_ms: int, zone: str) -> None:
    """A request's day and period never disagree."""
    assert day_of(now_ms, ZoneInfo(zone)).startswith(period_of(now_ms, ZoneInfo(zone)) + "-")


@given(instants, st.sampled_from(ZONES))
def test_no_instant_of_a_period_is_before_its_earliest(now_ms: int, zone: str) -> None:
    """In whichever zone a request was booked, it is found by that bound."""
    assert earliest_ms(period_of(now_ms, ZoneInfo(zone))) <= now_ms


@pytest.mark.usefixtures("process_zone")
def test_the_time_zone_of_the_process_does_not_matter() -> None:
    """TZ in the environment moves neither a month nor a time that is shown."""
    assert "TZ" in os.environ
    edge_ms = instant_ms("2026-01-31T20:30:00")
    assert (period_of(edge_ms - 1, ZoneInfo("Asia/Tehran")), period_of(edge_ms, ZoneInfo("Asia/Tehran"))) == (
        "2026-01",
        "2026-02",
    )
    assert day_of(edge_ms, UTC) == "2026-01-31"
    assert iso_time(edge_ms) == "2026-01-31T20:30:00Z"


def test_minutes_are_aligned_to_the_clock() -> None:
    """A window is one minute of the clock, its last millisecond included."""
    start_ms = instant_ms("2026-02-10T12:34:00")
    minute = minute_of(start_ms)
    assert [minute_of(start_ms - 1), minute_of(start_ms + 59_999), minute_of(start_ms + 60_000)] == [
        minute - 1,
        minute,
        minute + 1,
    ]
    assert minute_end_ms(minute) == start_ms + 60_000


@given(instants)
def test_an_instant_lies_within_its_minute(now_ms: int) -> None:
    """A window ends after now, at most a minute away."""
    assert 0 < minute_end_ms(minute_of(now_ms)) - now_ms <= 60_000


@pytest.mark.parametrize(
    ("away_ms", "seconds"),
    [(60_000, 60), (59_001, 60), (59_000, 59), (1_001, 2), (1_000, 1), (1, 1), (0, 1), (-5_000, 1)],
)
def test_seconds_are_rounded_up_and_at_least_one(away_ms: int, seconds: int) -> None:
    """Whoever waits as long as Retry-After says is not early."""
    now_ms = instant_ms("2026-02-10T12:34:56.789")
    assert seconds_until(now_ms + away_ms, now_ms) == seconds


@given(instants)
def test_iso_time_reads_back_as_the_same_second(instant: int) -> None:
    """What is shown is ISO 8601 in UTC."""
    shown = iso_time(instant)
    assert shown.endswith("Z")
    assert instant_ms(shown.replace("Z", "+00:00")) == instant // 1_000 * 1_000


@given(instant=instants, zone=st.sampled_from(ZONES))
def test_a_day_begins_with_its_first_instant(instant: int, zone: str) -> None:
    """The millisecond before is the day before, wherever clocks are put on or back."""
    day, of_zone = day_of(instant, ZoneInfo(zone)), ZoneInfo(zone)
    start = day_start_ms(day, of_zone)
    assert start <= instant
    assert (day_of(start, of_zone), day_of(start - 1, of_zone)) == (day, days_until(day, 2)[0])


@pytest.mark.parametrize(
    ("zone", "day", "start"),
    [
        ("Asia/Tehran", "2021-03-22", "2021-03-21T20:30:00"),  # clocks go from midnight to one
        ("America/Havana", "2026-11-01", "2026-11-01T04:00:00"),  # they go from one back to midnight
    ],
)
def test_a_day_without_or_with_two_midnights_begins_where_the_other_ends(zone: str, day: str, start: str) -> None:
    """There are countries where the clocks are changed at midnight."""
    assert day_start_ms(day, ZoneInfo(zone)) == instant_ms(start)


def test_days_are_listed_up_to_one() -> None:
    """Over the end of a February that has 29."""
    assert days_until("2028-03-01", 3) == ["2028-02-28", "2028-02-29", "2028-03-01"]
    assert [day_after(day) for day in ("2028-02-28", "2026-12-31")] == ["2028-02-29", "2027-01-01"]


def test_periods_are_listed_both_ways() -> None:
    """Over the turn of a year."""
    assert periods_from("2026-12", 3) == ["2026-12", "2027-01", "2027-02"]
    assert periods_until("2027-01", 3) == ["2027-01", "2026-12", "2026-11"]
