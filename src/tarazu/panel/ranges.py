"""The days that figures are shown of: the last ones, a month by either calendar, or dates of the reader's own. Pure.

A quota's month is Gregorian, as the books have it. Readers of Persian are offered the months of the Jalali calendar
too, and everybody may write dates of either: they narrow what is shown, and no bill.
"""

import re
from collections.abc import Callable
from datetime import date, timedelta

from jdatetime import date as jalali_date
from msgspec import Struct

from tarazu.domain.calendar import DayRange, days_until
from tarazu.domain.numbers import CHARACTERS_MAX, read_number
from tarazu.panel.formats import Formats
from tarazu.panel.language import Language
from tarazu.panel.messages import later, translations
from tarazu.service.provisioning_errors import ProvisioningError

OWN_DAYS_MAX = 366
USUAL = "30"
OWN = "own"
LAST_DAYS = (7, 30, 90)
JALALI_YEARS_END = 1_700
"""A year before it is one of the Jalali calendar: there were no computers in the Gregorian one."""

FIRST_DAY = date(1970, 1, 1)
"""No books have earlier ones."""

_WRONG_ORDER = later("The first day must not come after the last one, or after today.")
_DATE = re.compile(r"\s*([^\s/.-]{4})[/.-]([^\s/.-]{1,2})[/.-]([^\s/.-]{1,2})\s*")


class Shown(Struct, frozen=True, kw_only=True):
    """The days that are shown, and the name by which an address asks for them."""

    id: str
    days: DayRange


def read_days(asked: str, begin: str, end: str, today: str) -> Shown:
    """Tell the days that are asked for: by a name, or by dates of one's own. What is no name means the usual ones.

    Raises:
        ProvisioningError: the dates are none, in the wrong order, or too far apart.
    """
    if begin.strip() or end.strip():
        return Shown(id=OWN, days=_own(begin, end, date.fromisoformat(today)))
    named = _NAMED.get(asked)
    return _last(USUAL, today) if named is None else Shown(id=asked, days=named(date.fromisoformat(today)))


def read_span(begin: str, end: str, today: str) -> tuple[str | None, str | None]:
    """Tell the first and the last day that are asked for, of any number of days; None: from the first on, until today.

    Raises:
        ProvisioningError: the dates are none, or in the wrong order.
    """
    first, last = (written_date(text) if text.strip() else None for text in (begin, end))
    now = date.fromisoformat(today)
    if last is not None:
        last = min(last, now)
    if first is not None and first > (last or now):
        raise ProvisioningError(_WRONG_ORDER)
    return None if first is None else max(first, FIRST_DAY).isoformat(), None if last is None else last.isoformat()


def offered_days(today: str, formats: Formats) -> list[tuple[str, str]]:
    """List the names that an address may ask by, with what people read."""
    words, now = translations(formats.language), date.fromisoformat(today)
    offered = [
        (str(number), words.ngettext("{shown} day", "{shown} days", number).format(shown=formats.number(number)))
        for number in LAST_DAYS
    ]
    if formats.language is Language.PERSIAN:
        offered += [(name, formats.jalali_month(_NAMED[name](now).first)) for name in ("jalali", "last-jalali")]
    return offered + [(name, formats.month(_NAMED[name](now).first[:7])) for name in ("month", "last-month")]


def read_date(text: str) -> date | None:
    """Read a date as people write it: year, month and day, in either calendar and any digits; None: it is none."""
    parts = _DATE.fullmatch(text[: CHARACTERS_MAX + 1])
    if parts is None:
        return None
    year, month, day = (read_number(part) or 0 for part in parts.groups())
    try:
        if year < JALALI_YEARS_END:
            jalali: date = jalali_date(year, month, day).togregorian()
            return jalali
        return date(year, month, day)
    except ValueError:
        return None


def written_date(text: str, *, member: str | None = None) -> date:
    """Read a date as people write it.

    Raises:
        ProvisioningError: it is none.
    """
    day = read_date(text)
    if day is None:
        raise ProvisioningError("Write dates as year, month and day: 2026-11-28, or 1405/09/07.", member=member)
    return day


def _own(begin: str, end: str, today: date) -> DayRange:
    last = written_date(end) if end.strip() else today
    first = written_date(begin) if begin.strip() else last
    last = min(last, today)
    if first > last:
        raise ProvisioningError(_WRONG_ORDER)
    if (last - first).days >= OWN_DAYS_MAX:
        raise ProvisioningError("Choose at most {days} days.", days=OWN_DAYS_MAX)
    return DayRange(first=first.isoformat(), last=last.isoformat())


def _last(number: str, today: str) -> Shown:
    days = days_until(today, int(number))
    return Shown(id=number, days=DayRange(first=days[0], last=days[-1]))


def _last_days(number: int) -> Callable[[date], DayRange]:
    return lambda today: _last(str(number), today.isoformat()).days


def _month(today: date) -> DayRange:
    return DayRange(first=today.replace(day=1).isoformat(), last=today.isoformat())


def _jalali_month(today: date) -> DayRange:
    first: date = jalali_date.fromgregorian(date=today).replace(day=1).togregorian()
    return DayRange(first=first.isoformat(), last=today.isoformat())


def _before(month: Callable[[date], DayRange]) -> Callable[[date], DayRange]:
    return lambda today: month(date.fromisoformat(month(today).first) - timedelta(days=1))


_NAMED: dict[str, Callable[[date], DayRange]] = {
    **{str(number): _last_days(number) for number in LAST_DAYS},
    "month": _month,
    "last-month": _before(_month),
    "jalali": _jalali_month,
    "last-jalali": _before(_jalali_month),
}
