"""Both databases bring what they hold into the form that a search has."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import literal, select

from tarazu.store.engine import transaction
from tarazu.store.searching import any_contains
from tests.support.books import Books

LETTERS = st.characters(min_codepoint=1, max_codepoint=0x6FF, exclude_categories=["Cs", "Cn"])
"""Latin, Greek, Cyrillic and Arabic, with their signs and digits."""


@pytest.mark.both_stores
def test_a_text_has_itself_in_it(books: Books) -> None:
    """Whatever letters it is made of, and where it stands among others."""
    with transaction(books.engine) as connection:

        @given(text=st.text(LETTERS, max_size=12))
        def holds(text: str) -> None:
            has_it = any_contains(connection, text, literal(f"1 {text} 2"))
            assert connection.execute(select(has_it)).scalar()

        holds()
