"""Operators in the books."""

import pytest
from msgspec.structs import replace
from sqlalchemy.exc import IntegrityError

from tarazu.domain.people import Operator, OperatorStatus
from tarazu.store.engine import transaction
from tarazu.store.operators import (
    find_operator,
    find_operator_by_email,
    insert_operator,
    list_operators,
    lock_operator,
    operator_password,
    update_operator,
)
from tests.support.books import Books
from tests.support.people_values import make_operator
from tests.support.values import NOON_MS

pytestmark = pytest.mark.both_stores


def add(books: Books, *operators: Operator) -> None:
    """Write operators."""
    with transaction(books.engine) as connection:
        for operator in operators:
            insert_operator(connection, operator)


def test_an_operator_is_found_by_id_and_by_email(books: Books) -> None:
    """As written; whoever is not there is None."""
    operator = make_operator(language="fa", status=OperatorStatus.INACTIVE)
    add(books, operator)
    with transaction(books.engine) as connection:
        assert find_operator(connection, "opr_1") == lock_operator(connection, "opr_1") == operator
        assert find_operator_by_email(connection, operator.email) == operator
        assert find_operator(connection, "opr_2") is lock_operator(connection, "opr_2") is None
        assert find_operator_by_email(connection, "ada@example.com") is None


def test_operators_are_listed_oldest_first(books: Books) -> None:
    """All of them."""
    later = make_operator(created_at_ms=NOON_MS + 1)
    first = make_operator(id="opr_2", email="b@example.com")
    add(books, later, first)
    with transaction(books.engine) as connection:
        assert list_operators(connection) == [first, later]


def test_what_is_set_of_an_operator_is_of_that_one_alone(books: Books) -> None:
    """Whether there is a password is told; the hash only to whoever asks for it."""
    operator, other = make_operator(), make_operator(id="opr_2", email="b@example.com")
    add(books, operator, other)
    with transaction(books.engine) as connection:
        assert operator_password(connection, "opr_1") is None
        update_operator(connection, "opr_1", password="$hash", language="fa", name="G", status=OperatorStatus.INACTIVE)
        changed = replace(operator, has_password=True, language="fa", name="G", status=OperatorStatus.INACTIVE)
        assert (find_operator(connection, "opr_1"), find_operator(connection, "opr_2")) == (changed, other)
        assert operator_password(connection, "opr_1") == "$hash"
        assert operator_password(connection, "opr_3") is None


def test_the_second_operator_with_an_email_is_not_added(books: Books) -> None:
    """It tells so, and the first stays as it was; ids are never shared."""
    add(books, make_operator())
    with transaction(books.engine) as connection:
        assert not insert_operator(connection, make_operator(id="opr_2", name="Another"))
        assert list_operators(connection) == [make_operator()]
        assert insert_operator(connection, make_operator(id="opr_3", email="b@example.com"))
    with pytest.raises(IntegrityError):
        add(books, make_operator(email="c@example.com"))


def test_the_database_refuses_another_status(books: Books) -> None:
    """The last guard, below all code."""
    add(books, make_operator())
    with pytest.raises(IntegrityError):
        books.execute("UPDATE operators SET status = 'blocked'")
