"""The benchmark of the pages: it runs, and it ends when the books differ."""

from pathlib import Path

import pytest
from sqlalchemy import Engine

from bench import books
from bench.balance import BooksDifferError
from bench.panel import HTTP_PAGES, PAGES, Size, run
from tests.support.stores import SqliteStore, Store

TINY = Size(small=500, large=2_000, accounts=5, rounds=2)


def test_every_page_is_measured(sqlite_store: SqliteStore, tmp_path: Path) -> None:
    """In small and in large books, of one account and of many; on PostgreSQL it is the same."""
    stores: dict[str, Store] = {"sqlite": sqlite_store}
    report = run(stores, tmp_path, TINY)
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in report.splitlines() if line.startswith("|")]
    figures = [row for row in rows if row[1] in stores]
    assert [(row[0], row[1]) for row in figures] == [
        (page, store) for page in (*PAGES, *HTTP_PAGES) for store in stores
    ]
    assert {len(row) for row in rows} == {2 + 3 * 2 + 2}
    assert min(float(figure) for row in figures for figure in row[2:]) >= 0


def test_a_difference_in_the_books_ends_the_run(
    sqlite_store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that is quick because rows are missing is no page."""

    def fill(engine: Engine, size: books.Size, right: object = books.fill) -> None:
        assert callable(right)
        right(engine, size)
        with engine.begin() as connection:
            connection.exec_driver_sql("DELETE FROM daily_usage")

    monkeypatch.setattr("bench.books.fill", fill)
    with pytest.raises(BooksDifferError, match="daily usage"):
        run({"sqlite": sqlite_store}, tmp_path, TINY)
