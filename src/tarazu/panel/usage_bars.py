"""What was used, earned and lost on each day, or in each hour, as bars of a chart. Pure."""

from collections.abc import Iterable

from tarazu.panel.charts import Bar
from tarazu.panel.formats import Formats
from tarazu.panel.messages import translations
from tarazu.service.reports import UsageLine
from tarazu.service.shop_report import Hour, SoldLine


def usage_bars(days: Iterable[UsageLine | SoldLine], formats: Formats) -> list[Bar]:
    """Make a bar of the credits of each day."""
    return [_bar(day, formats) for day in days]


def request_bars(days: Iterable[SoldLine], formats: Formats) -> list[Bar]:
    """Make a bar of the answered requests of each day."""
    return [
        Bar(day.usage.requests, formats.short_day(day.id), _requests(formats.day(day.id), day.usage.requests, formats))
        for day in days
    ]


def money_bars(days: Iterable[SoldLine], formats: Formats, currency: str) -> list[Bar]:
    """Make a bar of the money of each day."""
    return [
        Bar(day.money, formats.short_day(day.id), f"{formats.day(day.id)}: {formats.money(day.money, currency)}")
        for day in days
    ]


def hour_bars(hours: Iterable[Hour], formats: Formats) -> list[Bar]:
    """Make a bar of the requests of each hour."""
    return [
        Bar(hour.requests, formats.time(hour.since_ms), _requests(formats.time(hour.since_ms), hour.requests, formats))
        for hour in hours
    ]


def failed_bars(hours: Iterable[Hour], formats: Formats) -> list[Bar]:
    """Make a bar of the requests of each hour that failed."""
    return [
        Bar(hour.failed, formats.time(hour.since_ms), _requests(formats.time(hour.since_ms), hour.failed, formats))
        for hour in hours
    ]


def _requests(when: str, number: int, formats: Formats) -> str:
    text = translations(formats.language).ngettext("{when}: {number} request", "{when}: {number} requests", number)
    return text.format(when=when, number=formats.number(number))


def _bar(line: UsageLine | SoldLine, formats: Formats) -> Bar:
    number = line.usage.credits
    text = translations(formats.language).ngettext("{day}: {credits} credit", "{day}: {credits} credits", number)
    title = text.format(day=formats.day(line.id), credits=formats.number(number))
    return Bar(number, formats.short_day(line.id), title)
