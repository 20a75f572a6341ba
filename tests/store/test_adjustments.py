"""Adjustments in the books: the last guards are the database's own."""

import pytest
from sqlalchemy.exc import IntegrityError

from tarazu.store.accounts import BalanceError
from tarazu.store.adjustments import Adjustment, find_adjustment, insert_adjustment
from tarazu.store.engine import transaction
from tests.support.books import Books, make_adjustment, make_topup
from tests.support.values import make_account

pytestmark = pytest.mark.both_stores


def adjust(books: Books, credits_: int, *, id_: str = "adj_1", reference: str | None = None) -> Adjustment:
    """Adjust the balance of acc_1."""
    adjustment = make_adjustment(credits_, id=id_, reference=reference)
    with transaction(books.engine) as connection:
        insert_adjustment(connection, adjustment)
    return adjustment


def test_an_adjustment_reads_back_by_its_reference(books: Books) -> None:
    """And changes the balance."""
    books.add(make_account(), make_topup(5))
    adjustment = adjust(books, -2, reference="r")
    with transaction(books.engine, read_only=True) as connection:
        assert find_adjustment(connection, "r") == adjustment
        assert find_adjustment(connection, "unknown") is None
    assert books.figures() == (0, 3)
    books.assert_balanced()


def test_the_audit_counts_adjustments(books: Books) -> None:
    """A row without its change of the balance is a difference."""
    books.add(make_account(), make_topup(5))
    adjust(books, -2)
    books.execute("UPDATE adjustments SET credits = -1")
    [difference] = books.audit().differences
    assert (difference.account_id, difference.figure, difference.booked, difference.computed) == (
        "acc_1",
        "balance",
        3,
        4,
    )


def test_a_balance_below_zero_is_refused_and_nothing_is_written(books: Books) -> None:
    """Neither the row nor the balance."""
    books.add(make_account(), make_topup(5))
    with pytest.raises(BalanceError):
        adjust(books, -6)
    assert books.rows("SELECT * FROM adjustments") == []
    assert books.figures() == (0, 5)


def test_the_database_refuses_nothing_and_what_was_there_before(books: Books) -> None:
    """0 credits, and the same reference again; references that are left out do not meet."""
    books.add(make_account())
    adjust(books, 1, id_="adj_1")
    adjust(books, 1, id_="adj_2")
    adjust(books, 1, id_="adj_3", reference="r")
    for credits_, reference in ((0, None), (1, "r")):
        with pytest.raises(IntegrityError):
            adjust(books, credits_, id_="adj_4", reference=reference)
    assert books.figures() == (0, 3)
