"""Wrong passwords in the books: counted from the first to the last, also by many at once."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy.exc import IntegrityError

from tarazu.domain.attempts import Failures, Rule
from tarazu.store.engine import transaction
from tarazu.store.sign_in_failures import count_failure, forget_failures, read_failures
from tests.support.books import Books
from tests.support.people_values import digest
from tests.support.values import MINUTE_MS, NOON_MS

pytestmark = pytest.mark.both_stores

RULE = Rule(5, 15 * MINUTE_MS, MINUTE_MS)
END_MS = NOON_MS + RULE.window_ms


def counted(books: Books, *numbers: int, now_ms: int = NOON_MS) -> list[Failures]:
    """Count one more of each subject; answer with what was counted of them before."""
    with transaction(books.engine) as connection:
        before = count_failure(connection, {digest(number): RULE for number in numbers}, now_ms)
    return [before[digest(number)] for number in numbers]


def read(books: Books, *numbers: int) -> list[Failures | None]:
    """Read what is counted of these subjects."""
    with transaction(books.engine, read_only=True) as connection:
        found = read_failures(connection, map(digest, numbers))
    return [found.get(digest(number)) for number in numbers]


def test_each_failure_is_told_what_was_counted_before(books: Books) -> None:
    """The window begins with the first and does not move with the others."""
    assert counted(books, 1) == [Failures(0, END_MS)]
    assert counted(books, 1, 2, now_ms=NOON_MS + 1) == [Failures(1, END_MS), Failures(0, END_MS + 1)]
    assert read(books, 1, 2, 3) == [Failures(2, END_MS), Failures(1, END_MS + 1), None]


def test_after_the_window_it_begins_anew(books: Books) -> None:
    """At the instant of its end; and so it does when a clock that was ahead is set back."""
    counted(books, 1)
    assert counted(books, 1, now_ms=END_MS) == [Failures(0, END_MS + RULE.window_ms)]
    assert counted(books, 1, now_ms=NOON_MS) == [Failures(0, END_MS)]
    assert counted(books, 1, now_ms=END_MS - 1) == [Failures(1, END_MS)]


def test_what_is_forgotten_begins_anew(books: Books) -> None:
    """The others are counted on."""
    counted(books, 1, 2)
    with transaction(books.engine) as connection:
        forget_failures(connection, digest(1))
    assert read(books, 1, 2) == [None, Failures(1, END_MS)]


def test_of_many_at_once_each_is_counted(books: Books) -> None:
    """Whatever the order in which they name their subjects, none is lost and nobody waits in a circle."""
    with ThreadPoolExecutor(4) as threads:
        orders = [(1, 2, 3), (3, 2, 1)] * 10
        before = list(threads.map(lambda order: counted(books, *order), orders))
    assert sorted(failures[1].number for failures in before) == list(range(20))
    assert read(books, 1, 2, 3) == [Failures(20, END_MS)] * 3


def test_the_database_refuses_a_count_of_nothing(books: Books) -> None:
    """A row is there for a failure at least."""
    counted(books, 1)
    with pytest.raises(IntegrityError):
        books.execute("UPDATE sign_in_failures SET failures = 0")
