"""Draw figures as SVG: bars over time, and a meter. Pure: values in, markup out.

All places and lengths are shares of the drawing, so it fits any width without distorting its letters. Colours and
sizes of letters are the style sheet's. A drawing has a name that sums it up, and each of its bars one that says all of
it, which is also written above the drawing while the bar is pointed at, touched or reached by the keyboard.
"""

from collections.abc import Callable, Sequence

from markupsafe import Markup
from msgspec import Struct

TOP = 6.0
"""Percent of the height above the highest gridline, for its label."""
BASE = 86.0
"""Percent of the height at which bars stand; under it are their labels."""
LABEL_BASE = 98.0
BAR_SHARE = 0.72
"""Of its place a bar fills so much."""
ROUNDING = 3
"""Pixels."""
LABELS_MAX = 5
STEPS = (10, 12, 15, 20, 25, 30, 40, 50, 60, 80)
"""Tenths of a power of ten at which an axis may end."""
EDGE_SHARE = 0.25
"""In so much of the width at either side what is written above a bar begins or ends there, so as to stay inside."""


PARTS_MAX = 6
"""Colours for the parts of a bar; the last one is for all that have none of their own."""


class Bar(Struct, frozen=True):
    """One value of a chart. `label` may stand under it; `title` says the whole of it.

    `parts` are what the value is made of, at most PARTS_MAX, the lowest first; `details` says them.
    """

    value: int
    label: str
    title: str
    parts: tuple[int, ...] = ()
    details: str = ""


def bar_chart(bars: Sequence[Bar], *, name: str, write: Callable[[int], str], is_rtl: bool = False) -> Markup:
    """Draw bars in their order, from the right where the language runs so; `write` writes the values of the axis."""
    top = nice_top(max((bar.value for bar in bars), default=0))
    parts = [_gridline(value, top, write(value), is_rtl=is_rtl) for value in _grid(top)]
    parts += [_bar(bar, place, len(bars), top, is_rtl=is_rtl) for place, bar in enumerate(bars)]
    parts.append(_BASELINE)
    parts += [_label(bars[place], place, len(bars), is_rtl=is_rtl) for place in labelled(len(bars))]
    return Markup('<svg class="chart" role="group" aria-label="{}" width="100%" height="100%">{}</svg>').format(
        name, Markup("").join(parts)
    )


def meter(value: int, limit: int, *, name: str, is_rtl: bool = False) -> Markup:
    """Draw which part of a whole it is; full when it is more."""
    share = 100.0 * min(1.0, max(0, value) / limit) if limit > 0 else 0.0
    start = 100.0 - share if is_rtl else 0.0
    return Markup(
        '<svg class="meter" role="img" aria-label="{}" width="100%" height="8">'
        '<rect class="whole" width="100%" height="8" rx="4"/>'
        '<rect class="part" x="{}%" width="{}%" height="8" rx="4"/></svg>'
    ).format(name, _short(start), _short(share))


def nice_top(highest: int) -> int:
    """Find the least round number, one of STEPS with noughts, that is not below `highest`; at least 1."""
    power = 1
    while True:
        for step in STEPS:
            top, rest = divmod(step * power, STEPS[0])
            if top >= highest and not rest:
                return top
        power *= 10


def labelled(number: int) -> range:
    """Choose which of so many bars have a label: evenly spaced, never too many to be read, the last one always."""
    step = max(1, -(-number // LABELS_MAX))
    return range((number - 1) % step, number, step)


_BASELINE = Markup('<line class="base" x1="0" x2="100%" y1="{y}%" y2="{y}%"/>').format(y=BASE)


def _grid(top: int) -> list[int]:
    return [top, top // 2] if top > 1 and top % 2 == 0 else [top]


def _gridline(value: int, top: int, written: str, *, is_rtl: bool) -> Markup:
    height = _height(value, top)
    return Markup('<line class="grid" x1="0" x2="100%" y1="{y}%" y2="{y}%"/>{text}').format(
        y=_short(height),
        text=Markup('<text class="axis {}" x="{}" y="{}%" dy="-4">{}</text>').format(
            "from-right" if is_rtl else "from-left", "100%" if is_rtl else "0", _short(height), written
        ),
    )


def _bar(bar: Bar, place: int, number: int, top: int, *, is_rtl: bool) -> Markup:
    room = 100.0 / number
    width = room * BAR_SHARE
    x = _start(place, number, is_rtl=is_rtl) + (room - width) / 2
    bar_markup = _pieces(bar, top) if bar.value else Markup("")
    start = _start(place, number, is_rtl=is_rtl)
    at, anchor = _title_place(start, room)
    # One bar, the last, is in the order of the keyboard; from it the arrow keys lead to the others.
    return Markup(
        '<g class="place" role="img" aria-label="{}" tabindex="{}">'
        '<rect class="catch" x="{}%" width="{}%" height="{}%"/>'
        '<svg x="{}%" width="{}%" height="{}%">{}</svg>'
        '<text class="told {}" x="{}%" dy="-4" aria-hidden="true">{}</text></g>'
    ).format(
        bar.title + bar.details,
        0 if place == number - 1 else -1,
        _short(start),
        _short(room),
        _short(BASE),
        _short(x),
        _short(width),
        _short(BASE),
        bar_markup,
        anchor,
        _short(at),
        bar.title,
    )


def _pieces(bar: Bar, top: int) -> Markup:
    """Draw a bar from its top to below its base, and over it each of its lower parts in the same way.

    The inner drawing ends at the base and cuts off the lower end, so that only the upper one is rounded.
    """
    parts = [(place, part) for place, part in enumerate(bar.parts, 1) if part]
    pieces, left = [], bar.value
    for nth, (place, part) in enumerate(reversed(parts or [(0, bar.value)])):
        kind = f"bar part-{place}" if place else "bar"
        rounding = Markup(' rx="{}"').format(ROUNDING) if nth == 0 else ""
        pieces.append(
            Markup('<rect class="{}" y="{}%" width="100%" height="110%"{}/>').format(
                kind, _short(100.0 * _height(left, top) / BASE), rounding
            )
        )
        left -= part
    return Markup("").join(pieces)


def _title_place(start: float, room: float) -> tuple[float, str]:
    """Tell where what is written above a bar stands, and whether it begins, ends or has its middle there."""
    share = (start + room / 2) / 100
    if share < EDGE_SHARE:
        return start, "from-left"
    if share > 1 - EDGE_SHARE:
        return start + room, "from-right"
    return start + room / 2, "from-middle"


def _label(bar: Bar, place: int, number: int, *, is_rtl: bool) -> Markup:
    middle = _start(place, number, is_rtl=is_rtl) + 50.0 / number
    return Markup('<text class="label" x="{}%" y="{}%">{}</text>').format(_short(middle), _short(LABEL_BASE), bar.label)


def _start(place: int, number: int, *, is_rtl: bool) -> float:
    return 100.0 * (number - 1 - place if is_rtl else place) / number


def _height(value: int, top: int) -> float:
    return BASE - (BASE - TOP) * value / top


def _short(number: float) -> str:
    return f"{number:.2f}".rstrip("0").rstrip(".")
