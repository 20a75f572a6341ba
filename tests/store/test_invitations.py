"""Invitations in the books: one for each person, taken once."""

from collections.abc import Callable

import pytest

from tarazu.domain.people import PersonKind
from tarazu.store.engine import transaction
from tarazu.store.invitations import find_invitation, forget_invitation, replace_invitation, take_invitation
from tarazu.store.operators import insert_operator
from tarazu.store.owners import Owner
from tests.support.books import Books
from tests.support.people_values import digest, make_operator
from tests.support.values import NOON_MS, make_account

pytestmark = pytest.mark.both_stores

ADA = Owner(PersonKind.HOLDER, "acc_1")
GRACE = Owner(PersonKind.OPERATOR, "opr_1")
END_MS = NOON_MS + 1_000


@pytest.fixture
def invite(books: Books) -> Callable[[int, Owner], None]:
    """Add a holder and an operator; answer with what invites one of them."""
    books.add(make_account())
    with transaction(books.engine) as connection:
        insert_operator(connection, make_operator())

    def invite(number: int, owner: Owner) -> None:
        with transaction(books.engine) as connection:
            replace_invitation(connection, digest(number), owner, created_at_ms=NOON_MS, expires_at_ms=END_MS)

    return invite


def found(books: Books, number: int, now_ms: int = NOON_MS) -> Owner | None:
    """Look an invitation up."""
    with transaction(books.engine, read_only=True) as connection:
        return find_invitation(connection, digest(number), now_ms)


def taken(books: Books, number: int, now_ms: int = NOON_MS) -> Owner | None:
    """Use an invitation up."""
    with transaction(books.engine) as connection:
        return take_invitation(connection, digest(number), now_ms)


def test_an_invitation_is_found_until_it_is_taken(books: Books, invite: Callable[[int, Owner], None]) -> None:
    """It tells whose it is, to the last, and is taken once."""
    invite(1, ADA)
    invite(2, GRACE)
    assert (found(books, 1), found(books, 2), found(books, 3)) == (ADA, GRACE, None)
    assert (taken(books, 1), taken(books, 1)) == (ADA, None)
    assert (found(books, 1), found(books, 2)) == (None, GRACE)


def test_an_invitation_that_has_ended_is_none(books: Books, invite: Callable[[int, Owner], None]) -> None:
    """At the instant of its end it is neither found nor taken."""
    invite(1, ADA)
    assert (found(books, 1, END_MS), taken(books, 1, END_MS)) == (None, None)
    assert taken(books, 1, END_MS - 1) == ADA


def test_a_new_invitation_of_a_person_replaces_the_old(books: Books, invite: Callable[[int, Owner], None]) -> None:
    """Nobody else's."""
    invite(1, ADA)
    invite(2, GRACE)
    invite(3, ADA)
    assert (found(books, 1), found(books, 2), found(books, 3)) == (None, GRACE, ADA)


def test_an_invitation_can_be_forgotten(books: Books, invite: Callable[[int, Owner], None]) -> None:
    """That of one person alone."""
    invite(1, ADA)
    invite(2, GRACE)
    with transaction(books.engine) as connection:
        forget_invitation(connection, ADA)
    assert (found(books, 1), found(books, 2)) == (None, GRACE)
