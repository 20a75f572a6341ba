"""The rests of backends in the books: each process has its own, and those of dead ones go."""

from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy.exc import IntegrityError

from tarazu.store import backend_rests
from tarazu.store.backend_rests import FORGOTTEN_AFTER_MS, BackendRest, read_rests, write_rests
from tarazu.store.engine import transaction
from tests.support.books import Books
from tests.support.values import NOON_MS

pytestmark = pytest.mark.both_stores


def rest(backend: str = "small#1", process: str = "a", **changes: Any) -> BackendRest:
    """Make the rest of a backend that ends in a minute."""
    made = BackendRest(
        process_id=process,
        backend=backend,
        model_id="small",
        state="tripped",
        fault="unreachable",
        since_ms=NOON_MS,
        until_ms=NOON_MS + 60_000,
    )
    return replace(made, **changes)


def write(books: Books, *rests: BackendRest, process: str = "a", now_ms: int = NOON_MS) -> None:
    """Write all rests of a process."""
    with transaction(books.engine) as connection:
        write_rests(connection, process, rests, now_ms)


def read(books: Books, now_ms: int = NOON_MS) -> list[BackendRest]:
    """Read what is not over."""
    with transaction(books.engine, read_only=True) as connection:
        return read_rests(connection, now_ms)


def test_a_process_replaces_its_own_rests_alone(books: Books) -> None:
    """What it does not name any more is over; those of others stay."""
    write(books, rest("small#1"), rest("small#2"))
    write(books, rest(process="b"), process="b")
    newest = rest("small#2", state="busy", fault="busy", until_ms=NOON_MS + 90_000)
    write(books, newest)
    assert read(books) == [newest, rest(process="b")]
    write(books)
    assert read(books) == [rest(process="b")]


def test_a_row_means_nothing_after_its_end(books: Books) -> None:
    """Nobody takes away what a process that has died has left, and nobody needs to."""
    write(books, rest(until_ms=NOON_MS + 1))
    assert len(read(books)) == 1
    assert read(books, NOON_MS + 1) == []


def test_what_dead_processes_have_left_is_taken_away_at_last(books: Books) -> None:
    """By whoever writes next, once it has meant nothing for long: clocks of other machines may be behind."""
    write(books, rest(process="dead", until_ms=NOON_MS), process="dead")
    write(books, now_ms=NOON_MS + FORGOTTEN_AFTER_MS)
    assert books.rows("SELECT process_id FROM backend_rests") == [("dead",)]
    write(books, now_ms=NOON_MS + FORGOTTEN_AFTER_MS + 1)
    assert books.rows("SELECT process_id FROM backend_rests") == []


def test_a_process_has_only_so_many_rows(books: Books, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first ones."""
    monkeypatch.setattr(backend_rests, "RESTS_MAX", 2)
    write(books, *(rest(f"small#{number}") for number in range(1, 5)))
    assert [each.backend for each in read(books)] == ["small#1", "small#2"]


@pytest.mark.parametrize("store_kind", ["postgresql"], indirect=True)
def test_nobody_waits_for_who_takes_old_rows_away(books: Books) -> None:
    """Two processes that come upon them at once do not stand in each other's way."""
    write(books, rest(process="dead", until_ms=NOON_MS), process="dead")
    later_ms = NOON_MS + FORGOTTEN_AFTER_MS + 1
    with transaction(books.engine) as first:
        write_rests(first, "a", [], later_ms)
        engine = books.open_engine({})
        with transaction(engine) as second:
            second.exec_driver_sql("SET LOCAL lock_timeout = 1")
            write_rests(second, "b", [rest(process="b", until_ms=later_ms + 9)], later_ms)
        engine.dispose()
    assert [each.process_id for each in read(books, later_ms)] == ["b"]


def test_a_state_that_is_none_is_refused(books: Books) -> None:
    """By the database itself."""
    with pytest.raises(IntegrityError):
        write(books, rest(state="ready"))


def test_the_audit_does_not_mind_them(books: Books) -> None:
    """They belong to no account, and no figure depends on them."""
    write(books, rest(model_id="sold no longer"))
    books.assert_balanced()
