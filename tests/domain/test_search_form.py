"""The form in which texts are compared: one for all ways in which people and keyboards write the same."""

from hypothesis import given
from hypothesis import strategies as st

from tarazu.domain.search_form import any_reads, search_form

LETTERS = st.characters(min_codepoint=1, max_codepoint=0x6FF, exclude_categories=["Cs", "Cn"])
TEXTS = st.text(LETTERS, max_size=20)
SAME = [
    ("ي", "ی"),
    ("ى", "ی"),
    ("ك", "ک"),
    ("ة", "ه"),
    ("أ", "ا"),
    ("٣", "3"),
    ("۳", "3"),
    ("Ü", "ü"),
    ("\u0130", "i"),
    ("Σ", "ς"),
]
UNREAD = "\u200c\u200d\u0640\u064e\u0651\u200f"


@given(TEXTS)
def test_the_form_of_a_form_is_itself(text: str) -> None:
    """So both sides of a comparison may be brought into it, however often."""
    once = search_form(text)
    assert search_form(once) == once


@given(TEXTS, TEXTS, st.sampled_from(SAME))
def test_what_reads_alike_has_one_form(before: str, after: str, same: tuple[str, str]) -> None:
    """Wherever in a text it stands."""
    first, second = (search_form(f"{before} {letter} {after}") for letter in same)
    assert first == second


@given(TEXTS, TEXTS, st.sampled_from(UNREAD))
def test_what_is_not_read_makes_no_difference(before: str, after: str, sign: str) -> None:
    """Half-spaces, lengthened letters, vowel signs, marks of direction."""
    assert search_form(f"{before} a{sign}b {after}") == search_form(f"{before} ab {after}")


@given(TEXTS, TEXTS, TEXTS)
def test_a_text_is_found_in_one_that_has_it(before: str, sought: str, after: str) -> None:
    """As it is, and in capitals that have small letters; in the second of several texts too."""
    assert any_reads(sought, None, "", f"{before} {sought} {after}")


def test_what_is_nowhere_is_not_found() -> None:
    """Nor is anything in a text that is not there."""
    assert not any_reads("x", None, "", "abc")
    assert any_reads("  ", "abc")
