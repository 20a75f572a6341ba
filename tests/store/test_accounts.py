"""Accounts in the books: made, found, changed, guarded."""

import pytest
from sqlalchemy.exc import IntegrityError

from tarazu.domain.accounts import AccountStatus, Window
from tarazu.store.accounts import (
    add_to_balance,
    find_account,
    find_account_by_email,
    has_accounts,
    insert_account,
    list_accounts,
    set_account_email,
    update_account,
)
from tarazu.store.engine import transaction
from tests.support.books import Books
from tests.support.values import NOON_MS, make_account

pytestmark = pytest.mark.both_stores


@pytest.mark.parametrize("status", AccountStatus)
@pytest.mark.parametrize("plan", ["basic", None])
def test_an_account_reads_back_as_it_was_written(books: Books, status: AccountStatus, plan: str | None) -> None:
    """Every field, also the empty ones."""
    account = make_account(
        name="Ærø 秤 \N{GRINNING FACE}",
        email="a@example.com" if plan else None,
        plan=plan,
        status=status,
        used=2**53 + 1,
        balance=2**62,
        window=Window(3, 4),
    )
    books.add(account)
    assert books.account() == account


def test_an_account_is_found_by_id_and_by_email(books: Books) -> None:
    """And an unknown one is None."""
    account = make_account(email="a@example.com")
    books.add(account)
    with transaction(books.engine, read_only=True) as connection:
        assert find_account(connection, "acc_1") == account
        assert find_account_by_email(connection, "a@example.com") == account
        assert find_account(connection, "acc_2") is None
        assert find_account_by_email(connection, "b@example.com") is None


def test_accounts_are_listed_oldest_first(books: Books) -> None:
    """By the time at which they were made, and by id within the same millisecond."""
    later, first, second = (
        make_account(id="acc_1", created_at_ms=NOON_MS + 1),
        make_account(id="acc_2"),
        make_account(id="acc_3"),
    )
    with transaction(books.engine, read_only=True) as connection:
        assert not has_accounts(connection)
        assert list_accounts(connection) == []
    books.add(later, second, first)
    with transaction(books.engine, read_only=True) as connection:
        assert has_accounts(connection)
        assert list_accounts(connection) == [first, second, later]


def test_ids_and_emails_are_unique(books: Books) -> None:
    """The database refuses the second id, and the second email is told; any number of accounts may have no email."""
    books.add(make_account(email="a@example.com"), make_account(id="acc_2"), make_account(id="acc_3"))
    with pytest.raises(IntegrityError):
        books.add(make_account())
    with transaction(books.engine) as connection:
        assert not insert_account(connection, make_account(id="acc_4", email="a@example.com"))
        assert find_account(connection, "acc_4") is None
        assert insert_account(connection, make_account(id="acc_4", email="b@example.com"))


def test_an_email_that_another_account_has_is_not_set(books: Books) -> None:
    """It tells so, nothing is changed, and the transaction goes on."""
    books.add(make_account(), make_account(id="acc_2", email="a@example.com"))
    with transaction(books.engine) as connection:
        assert not set_account_email(connection, "acc_1", "a@example.com")
        assert set_account_email(connection, "acc_2", "a@example.com")
        assert set_account_email(connection, "acc_1", "b@example.com")
    assert (books.account().email, books.account("acc_2").email) == ("b@example.com", "a@example.com")


def test_a_change_of_plan_and_status_leaves_the_figures(books: Books) -> None:
    """What was used stays used under the new plan."""
    books.add(make_account(used=7, balance=3, window=Window(1, 2)), make_account(id="acc_2"))
    with transaction(books.engine) as connection:
        update_account(connection, "acc_1", plan=None, status=AccountStatus.BLOCKED)
    assert books.account() == make_account(
        used=7, balance=3, window=Window(1, 2), plan=None, status=AccountStatus.BLOCKED
    )
    assert books.account("acc_2") == make_account(id="acc_2")


def test_the_balance_is_added_to_as_it_stands(books: Books) -> None:
    """In one statement, to one account."""
    books.add(make_account(), make_account(id="acc_2"))
    with transaction(books.engine) as connection:
        add_to_balance(connection, "acc_1", 3)
        add_to_balance(connection, "acc_1", 4)
    assert (books.figures(), books.figures("acc_2")) == ((0, 7), (0, 0))


@pytest.mark.parametrize(
    "change", ["balance = -1", "used = -1", "window_taken = -1", "status = 'deleted'", "status = NULL", "period = NULL"]
)
def test_the_database_refuses_what_no_account_may_be(books: Books, change: str) -> None:
    """The last guard, below all code."""
    books.add(make_account())
    with pytest.raises(IntegrityError):
        books.execute(f"UPDATE accounts SET {change}")  # noqa: S608 - the list above
    assert books.account() == make_account()
