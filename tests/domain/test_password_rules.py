"""Which passwords nobody may choose."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.domain.password_rules import PasswordFault, password_fault

ADA = ("ada.lovelace@example.com", "Ada Lovelace")
COMMON = frozenset({"basketball"})


def fault(password: str) -> PasswordFault | None:
    """Tell what is wrong with a password of Ada's."""
    return password_fault(password, own=ADA, is_common=COMMON.__contains__)


@pytest.mark.parametrize(
    ("password", "expected"),
    [
        ("basketball", PasswordFault.COMMON),
        ("BasketBall", PasswordFault.COMMON),
        ("ｂａｓｋｅｔｂａｌｌ", PasswordFault.COMMON),
        ("aaaaaaaaaa", PasswordFault.REPEATED),
        ("          ", PasswordFault.REPEATED),
        ("abababababa", PasswordFault.REPEATED),
        ("aaaaaaaaab", PasswordFault.REPEATED),
        ("aaaaabbbbb", PasswordFault.REPEATED),
        ("00000000001", PasswordFault.REPEATED),
        ("۱۲۳۴۵۶۷۸۹۰", PasswordFault.RUN),
        ("١٢٣٤٥٦٧٨٩٠", PasswordFault.RUN),
        ("basket\u00adball", PasswordFault.COMMON),
        ("ada lovelaceexamplecom", PasswordFault.OWN),
        ("سلامسلامسلام", PasswordFault.REPEATED),
        ("1234567890", PasswordFault.RUN),
        ("0987654321", PasswordFault.RUN),
        ("1234567890x", PasswordFault.RUN),
        ("12345678901234", PasswordFault.RUN),
        ("qwertyuiop", PasswordFault.RUN),
        ("poiuytrewq", PasswordFault.RUN),
        ("qwerty123456", PasswordFault.RUN),
        ("1qaz2wsx3edc", PasswordFault.RUN),
        ("1q2w3e4r5t6y", PasswordFault.RUN),
        ("ضصثقفغعهخح", PasswordFault.RUN),
        ("abcdefghijkl", PasswordFault.RUN),
        ("ada.lovelace@example.com", PasswordFault.OWN),
        ("ada.lovelace", PasswordFault.OWN),
        ("Ada Lovelace 1", PasswordFault.OWN),
        ("LovelaceLovelace", PasswordFault.OWN),
        ("tarazutarazu", PasswordFault.OWN),
        ("Tarazu2026", PasswordFault.OWN),
        ("ترازو۱۲۳۴۵", PasswordFault.OWN),
        ("correct horse battery staple", None),
        ("basketball in the rain", None),
        ("my tarazu is my own", None),
        ("Lovelace wrote the first program", None),
        ("1815-12-10 London", None),
        ("qwerty is no password", None),
        ("گذرواژهٔ من", None),
    ],
)
def test_what_is_tried_first_is_refused(password: str, expected: PasswordFault | None) -> None:
    """However it is written; a sentence is not, whatever stands in it."""
    assert fault(password) is expected


@given(st.text("aB1 !سمğ", min_size=1, max_size=4), st.integers(min_value=10, max_value=200))
def test_a_short_group_over_and_over_is_refused(group: str, length: int) -> None:
    """Whichever group, and however often."""
    password = (group * length)[:length]
    assert fault(password) is not None


@given(st.text(max_size=200))
def test_any_text_has_an_answer(text: str) -> None:
    """Whatever a person types."""
    fault(text)
