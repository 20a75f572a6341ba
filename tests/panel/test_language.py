"""Which language a page is in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.panel.language import Language, choose, preferred


@pytest.mark.parametrize(
    ("header", "language"),
    [
        ("fa", Language.PERSIAN),
        ("fa-IR,fa;q=0.9,en;q=0.8", Language.PERSIAN),
        ("en-GB,fa;q=0.9", Language.ENGLISH),
        ("de, fa;q=0.3, en;q=0.4", Language.ENGLISH),
        ("FA-ir", Language.PERSIAN),
        ("en;q=0, fa;q=0.1", Language.PERSIAN),
        ("fa;q=0", None),
        ("de-DE,de", None),
        ("*", None),
        ("", None),
        ("fa;q=nan", None),
        ("fa;q=7", None),
        ("fa;level=1", Language.PERSIAN),
    ],
)
def test_the_browsers_most_liked_language_is_found(header: str, language: Language | None) -> None:
    """By weight, then by order; regions do not matter, and what is malformed is not liked."""
    assert preferred(header) is language


def test_a_persons_choice_comes_before_the_cookie_and_the_cookie_before_the_browser() -> None:
    """Each decides where those before it are silent, or say a language that is not there."""
    assert choose(saved="fa", cookie="en", accept_language="en") is Language.PERSIAN
    assert choose(saved=None, cookie="fa", accept_language="en") is Language.PERSIAN
    assert choose(saved="xx", cookie="yy", accept_language="fa") is Language.PERSIAN
    assert choose(saved=None, cookie=None, accept_language="de") is Language.ENGLISH


@given(st.text())
def test_no_header_is_too_odd(header: str) -> None:
    """Whatever a browser sends, a page has a language."""
    assert choose(saved=None, cookie=header, accept_language=header) in Language
