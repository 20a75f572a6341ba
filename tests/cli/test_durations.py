"""Durations as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.cli.durations import DURATION_DAYS_MAX, duration_s


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90d", 90 * 86_400),
        ("12h", 43_200),
        ("30m", 1_800),
        ("45s", 45),
        ("1h30m", 5_400),
        ("1d2h3m4s", 93_784),
        ("0s", 0),
        ("90m", 5_400),
        (f"{DURATION_DAYS_MAX}d", DURATION_DAYS_MAX * 86_400),
    ],
)
def test_units_add_up(text: str, seconds: int) -> None:
    """Days, hours, minutes and seconds add up to whole seconds."""
    assert duration_s(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "90", "d", "1.5h", "-1d", "1h1h", "30m1h", "1w", "1 h", "1h ", "١d", "1D", "99999999999d"]
)
def test_anything_else_is_refused_with_examples(text: str) -> None:
    """What is no duration is refused, and the message shows how one is written."""
    with pytest.raises(ValueError, match="expected a duration such as 90d, 12h, 1h30m or 45s"):
        duration_s(text)


@pytest.mark.parametrize("text", [f"{DURATION_DAYS_MAX + 1}d", f"{DURATION_DAYS_MAX}d1s", "9999999999h"])
def test_a_duration_has_a_bound(text: str) -> None:
    """More than a century is refused, so that every expiry is a time that can be written."""
    with pytest.raises(ValueError, match=f"expected at most {DURATION_DAYS_MAX}d"):
        duration_s(text)


@given(st.integers(0, 36_499), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_what_is_written_in_full_is_read_back(days: int, hours: int, minutes: int, seconds: int) -> None:
    """Whatever the four figures are, none is lost."""
    assert duration_s(f"{days}d{hours}h{minutes}m{seconds}s") == ((days * 24 + hours) * 60 + minutes) * 60 + seconds
