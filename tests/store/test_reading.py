"""What a batch reads grows with the batch alone, not with the books."""

import re

import pytest

from tarazu.domain.admission import Asked
from tarazu.domain.idempotency import idempotency_of
from tarazu.store.batch import run_batch
from tarazu.store.engine import transaction
from tarazu.store.operations import Admit, Identify, Operation, Sweep
from tarazu.store.schema import metadata
from tests.support.books import Books, charge, release, sqlite_only
from tests.support.reading import plans, rows_read
from tests.support.values import held, make_account, make_asked, make_key, present

ACCOUNTS = 70
TIMES = 100
"""So many times more rows are in the books than those of the accounts above: all of them are dear to read."""
VARYING = {
    "accounts": ["id"],
    "keys": ["id"],
    "requests": ["id"],
    "daily_usage": ["model_id"],
    "idempotency_keys": ["key", "request_id"],
}
"""The tables that grow, and the columns in which the copies of a row differ."""


@pytest.fixture
def small_books(books: Books) -> Books:
    """Books with an account that has a key, and no requests."""
    books.add(make_account(id="acc_1"), make_key(1, account_id="acc_1"))
    return books


@pytest.fixture
def large_books(books: Books) -> Books:
    """Large books, with some accounts that have a key and a request that was charged."""
    numbers = range(1, ACCOUNTS + 1)
    books.add(*(make_account(id=f"acc_{number}") for number in numbers))
    books.add(*(make_key(number, account_id=f"acc_{number}") for number in numbers))
    holds = [held(answer) for answer in books.run(*(Admit(asked_again(number)) for number in numbers))]
    books.run(*(charge(hold, reply=b"Hello.") for hold in holds))
    for name, columns in VARYING.items():
        values = [
            f"{column} || '-' || CAST(number AS VARCHAR)" if column in columns else column for column in names(name)
        ]
        books.execute(
            "WITH RECURSIVE numbers(number) AS"  # noqa: S608 - the tests' own words
            " (SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < :times)"
            f" INSERT INTO {name} ({', '.join(names(name))}) SELECT {', '.join(values)} FROM {name}, numbers",
            times=TIMES,
        )
    books.execute("ANALYZE")
    return books


def names(table: str) -> list[str]:
    """List the columns of a table."""
    return [column.name for column in metadata.tables[table].columns]


def asked_again(number: int) -> Asked:
    """Make a call of this account with the idempotency key that all its calls have."""
    return make_asked(number, idempotency=idempotency_of(f"key {number}", b""))


def everything(books: Books, size: int) -> list[Operation]:
    """Make a batch of everything that batches are for, of this size each."""
    answers = books.run(*(Admit(make_asked(number)) for number in range(1, 3 * size + 1)))
    holds = [held(answer) for answer in answers]
    books.execute("UPDATE requests SET deadline_ms = 0 WHERE id = :id", id=holds[-1].request_id)
    return [
        *(charge(hold) for hold in holds[:size]),
        *(release(hold) for hold in holds[size : 2 * size]),
        *(Admit(make_asked(number)) for number in range(1, size + 1)),
        *(Admit(asked_again(number)) for number in range(1, size + 1)),
        Identify(present(7)),
        Sweep(),
    ]


@pytest.mark.parametrize("size", [1, 20])
@pytest.mark.parametrize("store_kind", ["postgresql"], indirect=True)
def test_postgresql_reads_only_the_rows_of_the_batch(large_books: Books, size: int) -> None:
    """Also when it has chosen a plan for a statement that comes again and again."""
    for _ in range(12):
        operations = everything(large_books, size)
        with transaction(large_books.engine) as connection:
            before = rows_read(connection, VARYING)
            run_batch(connection, operations, large_books.catalogue, large_books.clock())
            read = {table: rows - before[table] for table, rows in rows_read(connection, VARYING).items()}
        assert max(read.values()) < 30 * size + 30, read


@pytest.mark.parametrize("store_kind", ["postgresql"], indirect=True)
def test_postgresql_goes_by_ids_in_tables_that_it_believes_to_be_empty(small_books: Books) -> None:
    """It keeps a plan that it has made for a new month's first requests, and the next ones may be a hundred thousand.

    Nor by the index of what is held, which until it is vacuumed holds all that was.
    """
    small_books.execute("ANALYZE")
    holds = [held(answer) for answer in small_books.run(*(Admit(make_asked(1)) for _ in range(20)))]
    operations: list[Operation] = [*map(charge, holds), *(Admit(make_asked(1)) for _ in range(20))]
    with transaction(small_books.engine) as connection, plans(connection) as steps:
        run_batch(connection, operations, small_books.catalogue, small_books.clock())
    assert any("requests_default_pkey" in step for step in steps)
    assert [step for step in steps if "deadline" in step] == []
    assert [step for step in steps if re.search("(Hash|Merge) Join|Seq Scan on (?!intake)", step)] == []


@sqlite_only
def test_sqlite_reads_only_the_rows_of_the_batch(large_books: Books) -> None:
    """Each of its statements finds its rows by an index."""
    operations = everything(large_books, 20)
    with transaction(large_books.engine) as connection, plans(connection) as steps:
        run_batch(connection, operations, large_books.catalogue, large_books.clock())
    assert any(step.startswith("SEARCH accounts") for step in steps)
    assert [step for step in steps if step.startswith(tuple(f"SCAN {table}" for table in VARYING))] == []
