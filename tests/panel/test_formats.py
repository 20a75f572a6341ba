"""How numbers, money and times are written."""

from datetime import UTC, date, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.domain.numbers import read_number
from tarazu.panel.formats import LEFT_TO_RIGHT, Formats
from tarazu.panel.language import Language
from tests.support.values import instant_ms

TEHRAN = timezone(timedelta(hours=3, minutes=30))
ENGLISH = Formats(Language.ENGLISH, UTC)
PERSIAN = Formats(Language.PERSIAN, TEHRAN)
BOTH = (ENGLISH, PERSIAN)
INSTANTS_MS = st.integers(instant_ms("1990-01-01T00:00:00Z"), instant_ms("2150-01-01T00:00:00Z"))
LATIN_DIGITS = set("0123456789")


@given(st.integers(-(10**18), 10**18), st.sampled_from(BOTH))
def test_a_number_that_is_written_can_be_read_again(number: int, formats: Formats) -> None:
    """What a page shows may be typed into a form as it stands."""
    assert read_number(formats.number(number)) == number
    assert read_number(formats.change(number)) == number


@given(INSTANTS_MS, st.integers(0, 10**12))
def test_persian_has_no_latin_digit(instant_ms_: int, number: int) -> None:
    """Not in numbers, money, durations, percents, dates or times."""
    period = f"{2000 + number % 100}-{1 + number % 12:02}"
    written = (
        PERSIAN.number(number),
        PERSIAN.change(-number),
        PERSIAN.money(number, "IRT"),
        PERSIAN.duration(number),
        PERSIAN.percent(number % 101, 100),
        PERSIAN.moment(instant_ms_),
        PERSIAN.month(period),
    )
    assert LATIN_DIGITS.isdisjoint("".join(written))


@given(st.dates(date(1990, 1, 1), date(2150, 1, 1)))
def test_jalali_days_follow_each_other(day: date) -> None:
    """The next day is the next of its month, or the first of the month after; none is left out or comes twice."""
    today, tomorrow = (
        PERSIAN.day(each.isoformat()).translate(str.maketrans("۰۱۲۳۴۵۶۷۸۹", "0123456789")).split()
        for each in (day, day + timedelta(days=1))
    )
    if tomorrow[0] != "1":
        assert (int(tomorrow[0]), tomorrow[1:]) == (int(today[0]) + 1, today[1:])
    else:
        assert int(today[0]) in (29, 30, 31)
        assert tomorrow[1:] != today[1:]


@pytest.mark.parametrize(
    ("day", "written"),
    [
        ("2026-03-20", "۲۹ اسفند ۱۴۰۴"),
        ("2026-03-21", "۱ فروردین ۱۴۰۵"),
        ("2025-03-20", "۳۰ اسفند ۱۴۰۳"),
        ("2026-11-28", "۷ آذر ۱۴۰۵"),
    ],
)
def test_jalali_dates_are_those_of_the_calendar(day: str, written: str) -> None:
    """Also where its year turns, after a leap year and after another."""
    assert PERSIAN.day(day) == written


def test_each_language_has_its_own_way() -> None:
    """The same figures, side by side."""
    at_ms = instant_ms("2026-11-28T20:45:00Z")
    assert ENGLISH.number(1234567) == "1,234,567"
    assert PERSIAN.number(1234567) == "۱٬۲۳۴٬۵۶۷"
    assert ENGLISH.change(-250) == f"{LEFT_TO_RIGHT}−250"
    assert PERSIAN.change(250) == f"{LEFT_TO_RIGHT}+۲۵۰"
    assert ENGLISH.money(1500, "IRT") == "1,500\u00a0toman"
    assert PERSIAN.money(1500, "IRT") == "۱٬۵۰۰\u00a0تومان"
    assert PERSIAN.money(3, "EUR") == "۳\u00a0EUR"
    assert ENGLISH.moment(at_ms) == "28 November 2026, 20:45"
    assert PERSIAN.moment(at_ms) == "۸ آذر ۱۴۰۵، ۰۰:۱۵"
    assert ENGLISH.short_day("2026-11-28") == "28 Nov"
    assert PERSIAN.short_day("2026-11-28") == "۷ آذر"
    assert ENGLISH.month("2026-11") == "November 2026"
    assert PERSIAN.month("2026-11") == "نوامبر ۲۰۲۶"
    assert ENGLISH.duration(7) == "7\u00a0ms"
    assert PERSIAN.duration(999) == "۹۹۹\u00a0میلی‌ثانیه"
    assert ENGLISH.duration(1240) == "1.2\u00a0s"
    assert PERSIAN.duration(12_400) == "۱۲\u00a0ثانیه"
    assert ENGLISH.percent(1, 0) == "0%"
    assert PERSIAN.percent(17, 100) == "۱۷٪"
    assert PERSIAN.iso(at_ms) == "2026-11-29T00:15:00+03:30"
