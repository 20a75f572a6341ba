"""How numbers, money and times are written in each language. Pure.

English has Latin digits and the Gregorian calendar, Persian has Persian digits and the Jalali calendar. Billing months
are Gregorian, so in Persian too they have their Gregorian names.
"""

from datetime import UTC, datetime, tzinfo
from datetime import date as gregorian_date

from jdatetime import date as jalali_date
from msgspec import Struct

from tarazu.domain.calendar import MILLISECONDS_PER_SECOND
from tarazu.domain.numbers import MINUS
from tarazu.panel.language import Language

TOMAN = "IRT"
EVEN_S_MAX = 10
"""From so many seconds on a duration is told without tenths."""
LEFT_TO_RIGHT = "\u200e"
"""Keeps a sign before its digits, also inside a line that runs from right to left."""

_PERSIAN = str.maketrans("0123456789,.%", "۰۱۲۳۴۵۶۷۸۹٬٫٪")
_ENGLISH_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_ENGLISH_MONTH_LETTERS = 3
_GREGORIAN_MONTHS_IN_PERSIAN = (
    "ژانویه",
    "فوریه",
    "مارس",
    "آوریل",
    "مه",
    "ژوئن",
    "ژوئیه",
    "اوت",
    "سپتامبر",
    "اکتبر",
    "نوامبر",
    "دسامبر",
)
_JALALI_MONTHS = (
    "فروردین",
    "اردیبهشت",
    "خرداد",
    "تیر",
    "مرداد",
    "شهریور",
    "مهر",
    "آبان",
    "آذر",
    "دی",
    "بهمن",
    "اسفند",
)


class Formats(Struct, frozen=True):
    """Writes for readers of one language, in the time zone by which the books' days turn."""

    language: Language
    zone: tzinfo = UTC

    def digits(self, text: str) -> str:
        """Write the digits and separators of a number in the language's own."""
        return text.translate(_PERSIAN) if self.language is Language.PERSIAN else text

    def number(self, number: int) -> str:
        """Write a whole number: 1,234,567 or ۱٬۲۳۴٬۵۶۷."""
        return _signed("" if number >= 0 else MINUS, self.digits(f"{abs(number):,}"))

    def change(self, number: int) -> str:
        """Write a whole number as what is added or taken, with its sign."""
        return _signed("+" if number >= 0 else MINUS, self.digits(f"{abs(number):,}"))

    def percent(self, part: int, whole: int) -> str:
        """Write which part of a whole it is, to the whole percent; 0% of nothing."""
        return self.digits(f"{round(100 * part / whole) if whole else 0}%")

    def money(self, amount: int, currency: str) -> str:
        """Write an amount of money; tomans by their name, other currencies by their code."""
        unit = {Language.ENGLISH: "toman", Language.PERSIAN: "تومان"}[self.language] if currency == TOMAN else currency
        return f"{self.number(amount)}\u00a0{unit}"

    def duration(self, milliseconds: int) -> str:
        """Write how long something took: 240 ms, 1.2 s, 12 s."""
        if milliseconds < MILLISECONDS_PER_SECOND:
            return f"{self.digits(str(milliseconds))}\u00a0{'میلی‌ثانیه' if self.language is Language.PERSIAN else 'ms'}"
        seconds = milliseconds / MILLISECONDS_PER_SECOND
        written = self.digits(f"{seconds:.1f}" if seconds < EVEN_S_MAX else f"{seconds:,.0f}")
        return f"{written}\u00a0{'ثانیه' if self.language is Language.PERSIAN else 's'}"

    def date(self, instant_ms: int) -> str:
        """Write the day that it was: 28 November 2026 or ۷ آذر ۱۴۰۵."""
        return self._date(self._local(instant_ms).date(), is_short=False)

    def time(self, instant_ms: int) -> str:
        """Write the time of day: 17:05 or ۱۷:۰۵."""
        return self.digits(f"{self._local(instant_ms):%H:%M}")

    def moment(self, instant_ms: int) -> str:
        """Write day and time."""
        separator = "، " if self.language is Language.PERSIAN else ", "
        return self.date(instant_ms) + separator + self.time(instant_ms)

    def day(self, day: str) -> str:
        """Write a day of the books (YYYY-MM-DD) in full."""
        return self._date(gregorian_date.fromisoformat(day), is_short=False)

    def short_day(self, day: str) -> str:
        """Write a day of the books without its year: 28 Nov or ۷ آذر."""
        return self._date(gregorian_date.fromisoformat(day), is_short=True)

    def month(self, period: str) -> str:
        """Write a billing period (YYYY-MM): November 2026 or نوامبر ۲۰۲۶."""
        year, month = period.split("-")
        names = _GREGORIAN_MONTHS_IN_PERSIAN if self.language is Language.PERSIAN else _ENGLISH_MONTHS
        return f"{names[int(month) - 1]} {self.digits(year)}"

    def jalali_month(self, day: str) -> str:
        """Write the Jalali month that a day of the books is in, in Persian: آذر ۱۴۰۵."""
        jalali = jalali_date.fromgregorian(date=gregorian_date.fromisoformat(day))
        return f"{_JALALI_MONTHS[jalali.month - 1]} {self.digits(str(jalali.year))}"

    def iso(self, instant_ms: int) -> str:
        """Write an instant for programs, as the `datetime` of a `<time>`."""
        return self._local(instant_ms).isoformat(timespec="seconds")

    def _local(self, instant_ms: int) -> datetime:
        return datetime.fromtimestamp(instant_ms // MILLISECONDS_PER_SECOND, self.zone)

    def _date(self, day: gregorian_date, *, is_short: bool) -> str:
        if self.language is Language.PERSIAN:
            jalali = jalali_date.fromgregorian(date=day)
            written = f"{jalali.day} {_JALALI_MONTHS[jalali.month - 1]}"
            return self.digits(written if is_short else f"{written} {jalali.year}")
        month = _ENGLISH_MONTHS[day.month - 1]
        return f"{day.day} {month[:_ENGLISH_MONTH_LETTERS]}" if is_short else f"{day.day} {month} {day.year}"


def _signed(sign: str, digits: str) -> str:
    return f"{LEFT_TO_RIGHT}{sign}{digits}" if sign else digits


def isolated(text: str) -> str:
    """Let a text run as its own letters do, whatever stands around it: `<bdi>`, where no element may stand."""
    return f"\N{FIRST STRONG ISOLATE}{text}\N{POP DIRECTIONAL ISOLATE}"
