"""Sessions in the books: begun, found, ended, guarded."""

import pytest
from msgspec.structs import replace
from sqlalchemy.exc import IntegrityError

from tarazu.domain.people import PersonKind
from tarazu.domain.sessions import Session, seen_again
from tarazu.store.engine import transaction
from tarazu.store.operators import insert_operator
from tarazu.store.owners import Owner
from tarazu.store.sessions import (
    SESSIONS_MAX,
    confirm_session,
    end_session,
    end_sessions,
    find_session,
    insert_session,
    list_sessions,
    see_session,
)
from tests.support.books import Books
from tests.support.people_values import digest, make_operator, make_session
from tests.support.values import NOON_MS, make_account

pytestmark = pytest.mark.both_stores

HOLDER, OPERATOR = PersonKind.HOLDER, PersonKind.OPERATOR


@pytest.fixture
def books(books: Books) -> Books:
    """Add a holder and an operator."""
    books.add(make_account())
    with transaction(books.engine) as connection:
        insert_operator(connection, make_operator())
    return books


def add(books: Books, *sessions: Session) -> None:
    """Write sessions."""
    with transaction(books.engine) as connection:
        for session in sessions:
            insert_session(connection, session)


def found(books: Books, *numbers: int) -> list[int]:
    """Tell which of the sessions are there."""
    with transaction(books.engine, read_only=True) as connection:
        return [number for number in numbers if find_session(connection, digest(number)) is not None]


@pytest.mark.parametrize("kind", PersonKind)
def test_a_session_reads_back_as_it_was_written(books: Books, kind: PersonKind) -> None:
    """Every field, and no other one."""
    session = seen_again(make_session(1, kind), NOON_MS + 90_000)
    add(books, session)
    with transaction(books.engine, read_only=True) as connection:
        assert find_session(connection, digest(1)) == session
        assert find_session(connection, digest(2)) is None


def test_one_that_is_seen_is_written_and_one_that_has_ended_stays_so(books: Books) -> None:
    """A request that is on its way while its session is ended brings nothing back."""
    session = make_session(1)
    add(books, session)
    seen = seen_again(session, NOON_MS + 90_000)
    with transaction(books.engine) as connection:
        see_session(connection, seen)
        assert find_session(connection, digest(1)) == seen
        end_session(connection, digest(1))
        see_session(connection, seen)
        assert find_session(connection, digest(1)) is None


def test_all_sessions_of_one_person_end_but_the_one_to_keep(books: Books) -> None:
    """The live ones are counted; another person's stay."""
    add(books, *(make_session(number) for number in (1, 2, 3)), make_session(4, OPERATOR))
    later_ms = make_session(1).expires_at_ms - 1
    add(books, make_session(5, now_ms=later_ms))
    owner = Owner(HOLDER, "acc_1")
    with transaction(books.engine) as connection:
        assert end_sessions(connection, owner, later_ms, keep=digest(2)) == 3
    assert found(books, 1, 2, 3, 4, 5) == [2, 4]
    with transaction(books.engine) as connection:
        assert end_sessions(connection, owner, later_ms + 1) == 0
    assert found(books, 2, 4) == [4]


@pytest.mark.parametrize("kind", PersonKind)
def test_a_persons_live_sessions_are_listed_the_last_seen_first(books: Books, kind: PersonKind) -> None:
    """With all that is known of each; none of another person, and none that has ended."""
    other = OPERATOR if kind is HOLDER else HOLDER
    first, second = make_session(1, kind), make_session(2, kind, NOON_MS + 1)
    told = replace(make_session(3, kind, NOON_MS + 2), address="192.0.2.1", browser="Firefox, Linux")
    add(books, first, told, second, make_session(4, other))
    owner = Owner(kind, first.person_id)
    with transaction(books.engine) as connection:
        assert list_sessions(connection, owner, NOON_MS) == [told, second, first]
        assert list_sessions(connection, owner, first.expires_at_ms) == [told, second]
        confirm_session(connection, digest(2), NOON_MS + 5)
        assert find_session(connection, digest(2)) == replace(second, confirmed_at_ms=NOON_MS + 5)


def test_a_session_of_an_earlier_release_tells_less(books: Books) -> None:
    """It has neither an address nor a browser, and is not confirmed."""
    add(books, make_session(1))
    books.execute("UPDATE sessions SET address = NULL, browser = NULL, confirmed_at_ms = NULL")
    with transaction(books.engine, read_only=True) as connection:
        session = find_session(connection, digest(1))
    assert session == replace(make_session(1), confirmed_at_ms=None)
    assert not session.is_confirmed(NOON_MS)


def test_the_oldest_make_room_for_a_new_one(books: Books) -> None:
    """SESSIONS_MAX of each person, and the new one among them, whatever the clock says."""
    add(books, make_session(99, OPERATOR), *(make_session(number) for number in range(1, SESSIONS_MAX + 1)))
    new = replace(make_session(50), created_at_ms=NOON_MS - 1)
    add(books, new)
    assert found(books, 50, 99) == [50, 99]
    assert len(found(books, *range(1, SESSIONS_MAX + 1))) == SESSIONS_MAX - 1


@pytest.mark.parametrize("change", ["operator_id = 'opr_1'", "account_id = NULL", "account_id = 'x'", "digest = NULL"])
def test_the_database_refuses_what_no_session_may_be(books: Books, change: str) -> None:
    """It is of one person, who is there."""
    add(books, make_session(1))
    with pytest.raises(IntegrityError):
        books.execute(f"UPDATE sessions SET {change}")  # noqa: S608 - the list above
