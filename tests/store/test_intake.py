"""The intake switch: one row, set by the operator."""

import pytest
from sqlalchemy.exc import IntegrityError

from tarazu.domain.accounts import Intake
from tarazu.store.engine import transaction
from tarazu.store.intake import read_intake, write_intake
from tests.support.books import Books

pytestmark = pytest.mark.both_stores


def test_new_books_take_requests(books: Books) -> None:
    """The switch is there from the start, and off."""
    with transaction(books.engine, read_only=True) as connection:
        assert read_intake(connection) == Intake(stopped=False, retry_after_s=300)


@pytest.mark.parametrize("switch", [Intake(stopped=True, retry_after_s=1), Intake(stopped=False, retry_after_s=3_600)])
def test_the_switch_reads_back_as_it_was_set(books: Books, switch: Intake) -> None:
    """Both of its fields."""
    with transaction(books.engine) as connection:
        write_intake(connection, switch)
    with transaction(books.engine, read_only=True) as connection:
        assert read_intake(connection) == switch


@pytest.mark.parametrize(
    "statement",
    ["INSERT INTO intake VALUES (2, 0, 60)", "UPDATE intake SET retry_after_s = 0", "UPDATE intake SET id = 2"],
)
def test_there_is_one_switch_with_a_retry_after_of_at_least_a_second(books: Books, statement: str) -> None:
    """The database refuses a second row, and a Retry-After that the header may not carry."""
    with pytest.raises(IntegrityError):
        books.execute(statement)
