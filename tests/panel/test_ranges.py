"""The days that figures are shown of: by name, by month of either calendar, by dates however they are written."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jdatetime import date as jalali_date

from tarazu.panel.formats import Formats
from tarazu.panel.language import Language
from tarazu.panel.ranges import OWN_DAYS_MAX, offered_days, read_date, read_days
from tarazu.service.provisioning_errors import ProvisioningError

DAYS = st.dates(date(2000, 1, 1), date(2100, 1, 1))
PERSIAN_DIGITS = str.maketrans("0123456789", "۰۱۲۳۴۵۶۷۸۹")


@given(DAYS, st.sampled_from("-/."), st.sampled_from([1, 2]))
def test_a_date_is_read_in_either_calendar_and_any_digits(day: date, stroke: str, width: int) -> None:
    """Years before 1700 are Jalali."""
    jalali = jalali_date.fromgregorian(date=day)
    for each in (day, jalali):
        text = f" {each.year}{stroke}{each.month:0{width}}{stroke}{each.day:0{width}} "
        assert read_date(text) == read_date(text.translate(PERSIAN_DIGITS)) == day


@given(st.text(max_size=60))
def test_what_is_no_date_is_none(text: str) -> None:
    """Whatever it is, nothing breaks."""
    assert read_date(text) is None or any(letter.isdigit() for letter in text)


@pytest.mark.parametrize(
    "text", ["", "today", "2026-13-01", "2026-02-30", "1405/12/30", "26-11-28", "2026-11", "0-0-0", "²026-01-01"]
)
def test_dates_that_are_none(text: str) -> None:
    """No such month, no such day, no such year."""
    assert read_date(text) is None


@given(DAYS)
def test_every_range_on_offer_is_one_and_ends_no_later_than_today(today: date) -> None:
    """Whole months of either calendar, and the last days; Jalali ones to readers of Persian alone."""
    offers = {language: dict(offered_days(today.isoformat(), Formats(language))) for language in Language}
    assert {*offers[Language.PERSIAN]} - {*offers[Language.ENGLISH]} == {"jalali", "last-jalali"}
    for name in offers[Language.PERSIAN]:
        shown = read_days(name, "", "", today.isoformat())
        first, last = date.fromisoformat(shown.days.first), date.fromisoformat(shown.days.last)
        assert (shown.id, len(shown.days.days)) == (name, (last - first).days + 1)
        if not name.startswith("last-"):
            assert last == today
        if name.endswith("month"):
            assert first.day == 1
        if name.endswith("jalali"):
            assert jalali_date.fromgregorian(date=first).day == 1
        if name.isdigit():
            assert len(shown.days.days) == int(name)


@given(DAYS, st.sampled_from(["month", "jalali"]))
def test_the_last_month_ends_where_this_one_begins(today: date, month: str) -> None:
    """No day is in both, and none between."""
    last, this = (read_days(name, "", "", today.isoformat()).days for name in (f"last-{month}", month))
    assert date.fromisoformat(last.last) + timedelta(days=1) == date.fromisoformat(this.first)


def test_own_dates_end_today_at_the_latest() -> None:
    """One alone is a day, or the first of the days until now; another range that is named counts for nothing."""
    read = read_days("7", "2026-11-01", "2027-01-01", "2026-11-30").days
    assert (read.first, read.last) == ("2026-11-01", "2026-11-30")
    assert read_days("", "1405/08/10", "", "2026-11-30").days == read
    assert read_days("", "", "2026-11-05", "2026-11-30").days.days == ["2026-11-05"]
    assert read_days("no such", "", " ", "2026-11-30").id == "30"


@pytest.mark.parametrize(
    ("begin", "end", "said"),
    [
        ("yesterday", "", "Write dates"),
        ("2026-11-01", "x", "Write dates"),
        ("2026-11-02", "2026-11-01", "must not come after"),
        ("2027-01-01", "", "must not come after"),
        ("2025-11-29", "2026-11-30", f"at most {OWN_DAYS_MAX} days"),
    ],
)
def test_own_dates_that_cannot_be_are_refused_in_words(begin: str, end: str, said: str) -> None:
    """Which is told to people in their language."""
    with pytest.raises(ProvisioningError, match=said):
        read_days("", begin, end, "2026-11-30")
    assert len(read_days("", "2025-11-30", "2026-11-30", "2026-11-30").days.days) == OWN_DAYS_MAX
