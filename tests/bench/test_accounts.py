"""The benchmark of one hot account against many: it runs, and it ends when the books differ."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.accounts import Size, check, run
from bench.balance import BooksDifferError
from bench.figures import Figures
from tests.support.books import Books, charge, open_books
from tests.support.stores import PostgresqlStore, SqliteStore, Store
from tests.support.values import held, make_account, make_key

TINY = Size(accounts=20, callers=(1, 4), rounds=1, seconds=0.05, warm_up_s=0.02)


def test_every_cell_is_measured(sqlite_store: SqliteStore, postgresql_store: PostgresqlStore, tmp_path: Path) -> None:
    """Both levels, both stores, each number of callers: one row in the table, all books audited on the way."""
    stores: dict[str, Store] = {"sqlite": sqlite_store, "postgresql": postgresql_store}
    report = asyncio.run(run(stores, tmp_path, TINY))
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in report.splitlines() if line.startswith("|")]
    measured = [(row[0], row[1], row[2]) for row in rows if row[1] in stores]
    assert sorted(measured) == sorted(
        (level, store, callers) for level in ("HTTP", "ledger") for store in stores for callers in ("1", "4")
    )
    figures = [float(figure.replace(",", "")) for row in rows if row[1] in stores for figure in row[3:]]
    assert len(figures) == 8 * 7
    assert min(figures) > 0


@pytest.fixture
def books(sqlite_store: SqliteStore, tmp_path: Path) -> Iterator[Books]:
    """Books with one charged request."""
    with open_books(sqlite_store, tmp_path) as books:
        books.add(make_account(), make_key())
        books.run(charge(held(books.admit())))
        yield books


def test_books_that_are_right_pass(books: Books) -> None:
    """One request was served, and is charged."""
    check(books.engine, 1)


def test_a_request_that_is_not_charged_ends_the_run(books: Books) -> None:
    """A figure that was reached by losing requests is none."""
    with pytest.raises(BooksDifferError, match="2 requests were served, and 1 charged"):
        check(books.engine, 2)


def test_a_difference_in_the_books_ends_the_run(books: Books) -> None:
    """Nor one that was reached by losing credits."""
    books.execute("UPDATE accounts SET used = used + 1")
    with pytest.raises(BooksDifferError, match="figure='used'"):
        check(books.engine, 1)


def test_figures_are_taken_over_all_rounds() -> None:
    """Requests a second over the time of all, percentiles of all requests."""
    figures = Figures()
    figures.add(1.0, [0.001] * 50)
    figures.add(3.0, [0.002] * 150)
    assert figures.per_second == 50
    assert (figures.percentile_ms(10), figures.percentile_ms(50)) == (1.0, 2.0)
