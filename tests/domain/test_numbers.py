"""Numbers that people write: a whole number is read as it was meant, and nothing else is read."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.domain.numbers import MINUS, SEPARATORS, read_decimal, read_number

ANY_SEPARATOR = st.sampled_from(SEPARATORS)
NUMBERS = st.integers(0, 10**18)
SIGNS = st.sampled_from(["", "+", "-", MINUS])
SCRIPTS = st.sampled_from(["0123456789", "۰۱۲۳۴۵۶۷۸۹", "٠١٢٣٤٥٦٧٨٩"])
THOUSANDS = re.compile(r"[1-9][0-9]{0,2}(,[0-9]{3})+")


@given(NUMBERS, ANY_SEPARATOR, SIGNS, SCRIPTS)
def test_groups_of_three_are_read_in_any_script(number: int, separator: str, sign: str, script: str) -> None:
    """With one kind of separator or with none, with a sign or without, in Latin, Persian and Arabic digits."""
    expected = -number if sign in {"-", MINUS} else number
    for written in (str(number), f"{number:,}".replace(",", separator)):
        assert read_number(sign + written.translate(str.maketrans("0123456789", script))) == expected


@given(st.lists(st.text("0123456789", max_size=5), min_size=2, max_size=6), ANY_SEPARATOR, SIGNS)
def test_no_other_grouping_is_a_number(groups: list[str], separator: str, sign: str) -> None:
    """Whatever their lengths: the first has one to three digits and no leading zero, the others have three."""
    is_number = THOUSANDS.fullmatch(",".join(groups)) is not None
    if separator.isspace() and not (groups[0] and groups[-1]):
        return  # white space around a number separates nothing
    number = (-1 if sign in {"-", MINUS} else 1) * int("".join(groups) or "0")
    assert read_number(sign + separator.join(groups)) == (number if is_number else None)


@given(NUMBERS, ANY_SEPARATOR, ANY_SEPARATOR)
def test_two_kinds_of_separators_are_no_number(number: int, one: str, other: str) -> None:
    """1,000 000 is a slip, or a list."""
    million = f"{number % 999 + 1}{one}000{other}000"
    assert (read_number(million) is None) is (one != other)


@given(st.text())
def test_no_text_is_too_odd_to_be_read(text: str) -> None:
    """It is a whole number, or it is none."""
    assert isinstance(read_number(text), int | None)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("12", 12),
        (" 1,234 ", 1234),
        ("۱۲٬۳۴۵", 12345),
        ("۱٬۰۰۰", 1000),
        ("٣", 3),
        ("-5", -5),
        ("\u200e−5", -5),
        ("+7", 7),
        ("1_000", 1000),
        ("1 000 000", 1_000_000),
        ("007", 7),
        ("", None),
        ("-", None),
        ("1,5", None),
        ("12,34", None),
        ("1,00", None),
        ("-1,5", None),
        ("1 5", None),
        ("۱،۵", None),
        (",,5", None),
        ("5,", None),
        ("0,500", None),
        ("1,000,00", None),
        ("1000,000", None),
        ("1.5", None),
        ("1.000", None),
        ("۱٫۵", None),
        ("1e3", None),
        ("²", None),
        ("abc", None),
        ("--1", None),
        ("9" * 51, None),
    ],
)
def test_numbers_are_read_as_people_write_them(text: str, number: int | None) -> None:
    """In Latin, Persian and Arabic digits, with separators and a sign; anything else is no number."""
    assert read_number(text) == number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0.7", 0.7),
        ("۰٫۷", 0.7),
        ("۰/۷", 0.7),
        ("0,7", 0.7),
        (" -1 ", -1),
        (MINUS + "1", -1),
        ("2", 2),
        ("", None),
        ("1e1", None),
        ("nan", None),
        ("0.7.1", None),
        (".", None),
        ("9" * 60, None),
    ],
)
def test_a_decimal_is_read_in_either_languages_digits_and_points(text: str, number: float | None) -> None:
    """And nothing else is."""
    assert read_decimal(text) == number
