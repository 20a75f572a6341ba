"""A flood of one event is summed up, and nothing of it is lost from the count."""

from typing import Any

import structlog
from hypothesis import given
from hypothesis import strategies as st

from tarazu.service.log_sums import COUNTED, KIND_FIELDS, KINDS_MAX, PASS_MAX, SUM_S, Fields, Sums


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        """Tell the time."""
        return self.now_s


def passed(sums: Sums, event: str = "broken", level: str = "error", **fields: Any) -> Fields | None:
    """Hand a line to the processor; None where it is kept back."""
    try:
        return sums(None, level, {"event": event, "level": level, **fields})
    except structlog.DropEvent:
        return None


def test_the_first_lines_pass_and_the_rest_are_one() -> None:
    """After SUM_S it tells the last of them, and how many there were."""
    sums = Sums(clock := Clock())
    written = [passed(sums, request_id=number) for number in range(1_000)]
    assert [line is not None for line in written] == [number < PASS_MAX for number in range(1_000)]
    assert sums.due() == []
    clock.now_s = SUM_S
    assert sums.due() == [{"event": "broken", "level": "error", "request_id": 999, "times": 1_000 - PASS_MAX}]


def test_a_flood_that_goes_on_is_one_line_each_time() -> None:
    """Only after a pause do lines pass again."""
    sums = Sums(clock := Clock())
    for _ in range(PASS_MAX + 1):
        passed(sums)
    clock.now_s = SUM_S
    assert [line["times"] for line in sums.due()] == [1]
    assert passed(sums) is None
    clock.now_s = 2 * SUM_S
    assert [line["times"] for line in sums.due()] == [1]
    clock.now_s = 3 * SUM_S
    assert sums.due() == []
    assert passed(sums) is not None


def test_what_is_counted_is_one_line_a_minute() -> None:
    """Each kind by itself."""
    sums = Sums(clock := Clock())
    for event, pause_s in COUNTED.items():
        assert passed(sums, event, key_id="a") is not None
        assert passed(sums, event, key_id="b") is not None
        assert passed(sums, event, key_id="a") is None
        clock.now_s += pause_s
        assert [(line["key_id"], line["times"]) for line in sums.due()] == [("a", 1)]


def test_what_is_done_on_purpose_is_never_summed_up() -> None:
    """Such as a sign-in, or the line of a request."""
    sums = Sums(Clock())
    assert all(passed(sums, level="info") is not None for _ in range(1_000))


def test_there_are_only_so_many_kinds() -> None:
    """Beyond them, lines of one event are of one kind, however they differ."""
    sums = Sums(Clock())
    written = [passed(sums, reason=str(number)) for number in range(10 * KINDS_MAX)]
    assert sum(line is not None for line in written) == KINDS_MAX + PASS_MAX
    assert len(sums._kinds) == KINDS_MAX + 1


LINES = st.lists(
    st.tuples(
        st.sampled_from(["one", "two", *COUNTED]),
        st.sampled_from([*KIND_FIELDS, "request_id"]),
        st.integers(0, 3),
        st.floats(0, SUM_S),
    ),
    max_size=200,
)


@given(LINES)
def test_every_line_is_written_or_counted(lines: list[tuple[str, str, int, float]]) -> None:
    """Those that passed, and the times of the sums, are all that there were; at the end nothing is left."""
    sums = Sums(clock := Clock())
    written = counted = 0
    for event, field, value, pause_s in lines:
        fields: dict[str, Any] = {field: value}
        written += passed(sums, event, **fields) is not None
        clock.now_s += pause_s
        counted += sum(line["times"] for line in sums.due())
    counted += sum(line["times"] for line in sums.due(at_end=True))
    assert written + counted == len(lines)
    assert sums.due(at_end=True) == []
