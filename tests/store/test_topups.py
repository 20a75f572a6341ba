"""Top-ups: the only way in for money, and each counts once."""

import pytest
from sqlalchemy.exc import IntegrityError

from tarazu.domain.credits import BALANCE_MAX
from tarazu.store.accounts import BalanceError
from tarazu.store.engine import transaction
from tarazu.store.operations import Work
from tarazu.store.topups import find_topup, insert_topup
from tests.support.books import Books, make_topup
from tests.support.values import make_account

pytestmark = pytest.mark.both_stores


def test_a_top_up_adds_to_the_balance_and_reads_back(books: Books) -> None:
    """To that of its own account; it is found by its reference."""
    topup = make_topup(5, note="by bank transfer")
    books.add(make_account(), make_account(id="acc_2"), topup)
    assert (books.figures(), books.figures("acc_2")) == ((0, 5), (0, 0))
    with transaction(books.engine, read_only=True) as connection:
        assert find_topup(connection, topup.reference) == topup
        assert find_topup(connection, "unknown") is None
    books.assert_balanced()


def test_the_same_reference_twice_is_one_top_up(books: Books) -> None:
    """The second is refused and adds nothing, also for another account or another amount."""
    books.add(make_account(), make_account(id="acc_2"), make_topup(5, reference="payment"))
    for second in (
        make_topup(5, reference="payment"),
        make_topup(7, reference="payment"),
        make_topup(5, reference="payment", account_id="acc_2"),
    ):
        with pytest.raises(IntegrityError):
            books.add(second)
    assert (books.figures(), books.figures("acc_2")) == ((0, 5), (0, 0))
    books.assert_balanced()


def test_the_same_reference_twice_in_one_batch_is_one_top_up(books: Books) -> None:
    """Two that come at once: the first counts, the second is answered with its error, the batch goes on."""
    books.add(make_account())
    answers = books.run(
        *(
            Work(lambda connection, _now_ms, topup=topup: insert_topup(connection, topup))  # type: ignore[misc]
            for topup in (make_topup(5, reference="a"), make_topup(5, reference="a"), make_topup(2, reference="b"))
        )
    )
    assert [type(answer) for answer in answers] == [type(None), IntegrityError, type(None)]
    assert books.figures() == (0, 7)
    books.assert_balanced()


@pytest.mark.parametrize("credits_", [0, -1, -(10**12)])
def test_nothing_but_a_positive_amount_comes_in(books: Books, credits_: int) -> None:
    """The database refuses it, and the balance stays."""
    books.add(make_account(), make_topup(10**13))
    with pytest.raises(IntegrityError):
        books.add(make_topup(credits_))
    assert books.figures() == (0, 10**13)


def test_a_balance_beyond_what_the_books_hold_is_refused(books: Books) -> None:
    """Exactly the most of it is not; neither the row nor the balance is written."""
    books.add(make_account(), make_topup(BALANCE_MAX - 5))
    with pytest.raises(BalanceError):
        books.add(make_topup(6))
    books.add(make_topup(5))
    assert books.figures() == (0, BALANCE_MAX)
    books.assert_balanced()


def test_a_top_up_needs_its_account(books: Books) -> None:
    """No money for nobody."""
    with pytest.raises(BalanceError):
        books.add(make_topup(5, account_id="acc_unknown"))
    assert books.rows("SELECT * FROM topups") == []
