"""The credits of each day as bars of a chart. Pure."""

from collections.abc import Iterable

from tarazu.panel.charts import Bar
from tarazu.panel.formats import Formats
from tarazu.panel.messages import translations
from tarazu.service.reports import UsageLine


def usage_bars(days: Iterable[UsageLine], formats: Formats) -> list[Bar]:
    """Make a bar of each day."""
    return [_bar(day, formats) for day in days]


def _bar(line: UsageLine, formats: Formats) -> Bar:
    number = line.usage.credits
    text = translations(formats.language).ngettext("{day}: {credits} credit", "{day}: {credits} credits", number)
    title = text.format(day=formats.day(line.id), credits=formats.number(number))
    return Bar(number, formats.short_day(line.id), title)
