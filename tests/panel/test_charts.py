"""The drawings: sound, to scale, and inside their frame."""

from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.panel.charts import BASE, PARTS_MAX, TOP, Bar, bar_chart, labelled, meter, nice_top
from tarazu.panel.formats import Formats
from tarazu.panel.language import Language
from tarazu.panel.usage_bars import drawn as drawn_usage
from tarazu.service.reports import UsageLine, UsageReport
from tarazu.store.usage import Usage

VALUES = st.lists(st.integers(0, 10**12), min_size=1, max_size=90)


def drawn(values: list[int], *, is_rtl: bool = False) -> ET.Element:
    """Draw bars with these values; answer with the drawing as XML."""
    bars = [Bar(value, f"day {place}", f"{place}: {value}") for place, value in enumerate(values)]
    return ET.fromstring(bar_chart(bars, name="Credits <by> day", write=str, is_rtl=is_rtl))  # noqa: S314 - ours


def share(element: ET.Element, name: str) -> float:
    """Read a length in percent."""
    return float(element.attrib[name].removesuffix("%"))


def places(drawing: ET.Element) -> list[ET.Element]:
    """List the places of the bars, in the order of their values."""
    return drawing.findall("g")


def height(place: ET.Element) -> float:
    """Tell how high a bar stands above the base, in percent of the whole drawing."""
    bar = place.find("svg/rect")
    return 0.0 if bar is None else BASE - share(bar, "y") * BASE / 100


@given(VALUES)
def test_bars_are_to_scale(values: list[int]) -> None:
    """Each is as high as its value is a part of the axis, to a hundredth, and none leaves the drawing."""
    top = nice_top(max(values))
    for value, place in zip(values, places(drawn(values)), strict=True):
        assert height(place) == pytest.approx((BASE - TOP) * value / top, abs=0.02)


@given(VALUES)
def test_a_drawing_from_the_right_is_the_mirror_of_one_from_the_left(values: list[int]) -> None:
    """The first value stands at the side where reading begins."""
    for left, right in zip(places(drawn(values)), places(drawn(values, is_rtl=True)), strict=True):
        catches = left.find("rect"), right.find("rect")
        assert catches[0] is not None
        assert catches[1] is not None
        middle = [share(catch, "x") + share(catch, "width") / 2 for catch in catches if catch is not None]
        assert sum(middle) == pytest.approx(100, abs=0.1)


@given(st.lists(st.integers(0, 10**9), min_size=2, max_size=6).filter(any))
def test_parts_stand_on_each_other(parts: list[int]) -> None:
    """Together they are as high as the whole, each with its own colour; what is nothing is not drawn."""
    bar = Bar(sum(parts), "day", "day: all", parts=tuple(parts), details=" (its parts)")
    (place,) = places(ET.fromstring(bar_chart([bar], name="n", write=str)))  # noqa: S314 - ours
    top = nice_top(sum(parts))
    drawn_parts = place.findall("svg/rect")
    ends = [BASE - share(each, "y") * BASE / 100 for each in drawn_parts]
    filled = [(nth, part) for nth, part in enumerate(parts, 1) if part]
    sums = [sum(part for nth, part in filled if nth <= last) for last, _ in filled]
    assert ends == [pytest.approx((BASE - TOP) * each / top, abs=0.02) for each in reversed(sums)]
    assert [each.attrib["class"] for each in drawn_parts] == [f"bar part-{nth}" for nth, _ in reversed(filled)]
    assert place.attrib["aria-label"] == "day: all (its parts)"
    assert place.findtext("text") == "day: all"


@pytest.mark.parametrize(("models", "colours"), [(1, 0), (2, 2), (6, 6), (7, 5), (40, 5)])
def test_the_dearest_models_have_colours_of_their_own(models: int, colours: int) -> None:
    """At most as many as there are; all others share the last one, and what cost nothing has none."""
    day, used = "2026-11-28", {f"model {n}": models - n for n in range(models)}
    lines = tuple(UsageLine(id=id_, name=id_, usage=Usage(1, cost)) for id_, cost in (used | {"free": 0}).items())
    total = sum((line.usage for line in lines), start=Usage())
    of_models = {(day, line.id): line.usage for line in lines}
    days = (UsageLine(id=day, name=day, usage=total), UsageLine(id="2026-11-29", name="", usage=Usage()))
    usage = UsageReport(days=days, models=lines, keys=(), total=total, of_models=of_models)
    found = drawn_usage(usage, Formats(Language.ENGLISH))
    assert found.colours == tuple(used)[:colours]
    assert found.has_others is (models > PARTS_MAX)
    assert [sum(bar.parts) for bar in found.bars] == ([total.credits, 0] if colours else [0, 0])
    assert ("others" in found.bars[0].details) is found.has_others
    assert all(len(bar.parts) <= PARTS_MAX for bar in found.bars)


@given(st.integers(0, 10**15))
def test_the_axis_ends_at_a_round_number_close_above(highest: int) -> None:
    """It has at most two digits before its noughts, and the highest value fills three quarters of it at least."""
    top = nice_top(highest)
    assert len(str(top).rstrip("0")) <= 2
    assert max(1, highest) <= top <= max(1, highest * 4 / 3)


@pytest.mark.parametrize(
    ("highest", "top"), [(0, 1), (1, 1), (7, 8), (28, 30), (228, 250), (1_001, 1_200), (96_000, 100_000)]
)
def test_the_axis_of_usual_figures(highest: int, top: int) -> None:
    """As people would draw it."""
    assert nice_top(highest) == top


@given(st.integers(1, 400))
def test_labels_are_few_and_the_last_has_one(number: int) -> None:
    """Evenly spaced, so that they can be read on a phone."""
    places_ = list(labelled(number))
    assert 1 <= len(places_) <= 5
    assert places_[-1] == number - 1


def test_a_drawing_has_a_name_and_each_bar_its_figure() -> None:
    """For readers of every kind: by name, and as letters. Nothing of it is markup of others."""
    drawing = drawn([3, 0])
    assert (drawing.attrib["role"], drawing.attrib["aria-label"]) == ("group", "Credits <by> day")
    assert [place.attrib["aria-label"] for place in places(drawing)] == ["0: 3", "1: 0"]
    assert [place.findtext("text") for place in places(drawing)] == ["0: 3", "1: 0"]
    assert "style" not in {name for element in drawing.iter() for name in element.attrib}


@given(VALUES)
def test_the_keyboard_stops_once_at_a_drawing(values: list[int]) -> None:
    """However many bars it has: at the last one."""
    assert [place.attrib["tabindex"] for place in places(drawn(values))] == ["-1"] * (len(values) - 1) + ["0"]


@pytest.mark.parametrize(
    ("value", "limit", "part"), [(0, 10, 0), (5, 10, 50), (10, 10, 100), (25, 10, 100), (3, 0, 0), (-1, 10, 0)]
)
def test_a_meter_is_never_more_than_full(value: int, limit: int, part: float) -> None:
    """Nor less than empty; from the right it grows to the left."""
    left, right = (
        ET.fromstring(meter(value, limit, name="used", is_rtl=is_rtl)).findall("rect")[1]  # noqa: S314 - ours
        for is_rtl in (False, True)
    )
    assert (share(left, "x"), share(left, "width")) == (0, part)
    assert share(right, "x") + share(right, "width") == pytest.approx(100)
