"""What was used, earned and lost on each day, or in each hour, as bars of a chart. Pure."""

from collections.abc import Iterable, Sequence

from msgspec import Struct, structs

from tarazu.panel.charts import PARTS_MAX, Bar
from tarazu.panel.formats import Formats
from tarazu.panel.language import Language
from tarazu.panel.messages import translations
from tarazu.service.reports import UsageLine, UsageReport
from tarazu.service.shop_report import Hour, SoldLine
from tarazu.store.usage import Usage


class Drawn(Struct, frozen=True, kw_only=True):
    """A chart of what was used: `colours` names the models that have one in its bars; others share the last one."""

    bars: list[Bar]
    colours: tuple[str, ...] = ()
    has_others: bool = False


def usage_bars(days: Iterable[UsageLine | SoldLine], formats: Formats) -> list[Bar]:
    """Make a bar of the credits of each day."""
    return [_bar(day, formats) for day in days]


def drawn(usage: UsageReport, formats: Formats) -> Drawn:
    """Make a bar of the credits of each day, in which the models that cost most have colours, if there are several."""
    bars = usage_bars(usage.days, formats)
    named = [model for model in usage.models if model.usage.credits]
    if len(named) < len(("one", "another")):
        return Drawn(bars=bars)
    has_others = len(named) > PARTS_MAX
    named = named[: PARTS_MAX - 1] if has_others else named
    return Drawn(
        bars=[_stack(bar, day.id, usage, named, formats) for bar, day in zip(bars, usage.days, strict=True)],
        colours=tuple(model.name for model in named),
        has_others=has_others,
    )


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


def _stack(bar: Bar, day: str, usage: UsageReport, named: Sequence[UsageLine], formats: Formats) -> Bar:
    parts = [usage.of_models.get((day, model.id), Usage()).credits for model in named]
    told = [f"{model.name} {formats.number(part)}" for model, part in zip(named, parts, strict=True) if part]
    rest = bar.value - sum(parts)
    if rest:
        parts.append(rest)
        told.append(f"{translations(formats.language).gettext('others')} {formats.number(rest)}")
    comma = "، " if formats.language is Language.PERSIAN else ", "
    return structs.replace(bar, parts=tuple(parts), details=f" ({comma.join(told)})" if told else "")


def _requests(when: str, number: int, formats: Formats) -> str:
    text = translations(formats.language).ngettext("{when}: {number} request", "{when}: {number} requests", number)
    return text.format(when=when, number=formats.number(number))


def _bar(line: UsageLine | SoldLine, formats: Formats) -> Bar:
    number = line.usage.credits
    text = translations(formats.language).ngettext("{day}: {credits} credit", "{day}: {credits} credits", number)
    title = text.format(day=formats.day(line.id), credits=formats.number(number))
    return Bar(number, formats.short_day(line.id), title)
