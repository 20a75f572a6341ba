"""What a page reads does not grow with the books: rows and steps are counted, and no clock is asked."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection

from bench.books import Size, account_id, fill
from tarazu.domain.calendar import DayRange
from tarazu.service.reports import HistoryFilter, history, history_of_one, key_list, overview
from tarazu.service.shop_report import care, sales, shop_report
from tarazu.store.engine import transaction
from tarazu.store.keys import SoughtKeys
from tarazu.store.request_history import Ending
from tarazu.store.schema import metadata
from tarazu.store.shop import accounts_by_status
from tests.support.books import Books, open_books
from tests.support.reading import plans, rows_read, steps_counted
from tests.support.stores import Store
from tests.support.values import make_catalogue, make_plan

pytestmark = pytest.mark.both_stores

SMALL = Size(requests=5_000, accounts=50, days=10, idempotency_keys=0)
LARGE = Size(requests=50_000, accounts=50, days=10, idempotency_keys=0)
NOW_MS = LARGE.end_ms - 1
ACCOUNT = account_id(0)
CATALOGUE = make_catalogue(plans=[make_plan("bench", 10**9)])
ZONE = CATALOGUE.zone
JUNE = HistoryFilter(first_day="2026-06-01", last_day="2026-06-30")
OF_NO_KEY = HistoryFilter(key_id="key_of_nobody")
FAILURES = HistoryFilter(ending=Ending.FAILED, model_id="no/such", first_day="2026-06-01", last_day="2026-06-30")
REFUSED = HistoryFilter(ending=Ending.REFUSED, first_day="2026-06-01", last_day="2026-06-30")
SCANS = {
    "sqlite": ("SCAN requests", "SCAN daily_usage", "SCAN refused_requests"),
    "postgresql": ("Seq Scan on requests_2", "Seq Scan on daily_usage", "Seq Scan on refused_requests"),
}
"""How a step is told that goes through a table that grows; `requests_default` has nothing in it."""


def newest_id(connection: Connection) -> str:
    """Tell the id of the account's newest request."""
    return history(connection, ACCOUNT, ZONE, limit=1).entries[0].id


def next_page(connection: Connection) -> object:
    """Turn a page."""
    return history(connection, ACCOUNT, ZONE, before=newest_id(connection))


PAGES: dict[str, Callable[[Connection], object]] = {
    "overview": lambda connection: overview(connection, ACCOUNT, CATALOGUE, NOW_MS),
    "history": lambda connection: history(connection, ACCOUNT, ZONE),
    "history of a month": lambda connection: history(connection, ACCOUNT, ZONE, sought=JUNE),
    "history of a key": lambda connection: history(connection, ACCOUNT, ZONE, sought=OF_NO_KEY),
    "history of failures in a month": lambda connection: history(connection, ACCOUNT, ZONE, sought=FAILURES),
    "history of what was refused": lambda connection: history(connection, ACCOUNT, ZONE, sought=REFUSED),
    "next page of the history": next_page,
    "request": lambda connection: history_of_one(connection, ACCOUNT, newest_id(connection)),
    "keys": lambda connection: key_list(connection, ACCOUNT, ZONE, NOW_MS, SoughtKeys()),
    "shop": lambda connection: shop_report(connection, ZONE, NOW_MS),
    "sales of ten days": lambda connection: sales(connection, CATALOGUE, DayRange("2026-06-21", "2026-06-30")),
    "accounts that need care": lambda connection: care(connection, CATALOGUE, NOW_MS, accounts_by_status(connection)),
}


@pytest.fixture(scope="module")
def small(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Books]:
    """Books of 100 requests for each account."""
    yield from filled(store, tmp_path_factory.mktemp("small"), SMALL)


@pytest.fixture(scope="module")
def large(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Books]:
    """Books of the same accounts and days, with ten times as many requests."""
    yield from filled(store, tmp_path_factory.mktemp("large"), LARGE)


def filled(store: Store, folder: Path, size: Size) -> Iterator[Books]:
    """Open books with the usage of many years before, since of little of it PostgreSQL would rather read all."""
    with open_books(store, folder) as books:
        fill(books.engine, size)
        books.execute(
            "WITH RECURSIVE numbers(number) AS"
            " (SELECT 1000 UNION ALL SELECT number + 1 FROM numbers WHERE number < 1200)"
            " INSERT INTO daily_usage SELECT account_id, '1000-' || CAST(number AS VARCHAR), key_id, model_id,"
            " requests, credits, prompt_tokens, completion_tokens FROM daily_usage, numbers WHERE day = '2026-06-30'"
        )
        books.execute("ANALYZE")
        yield books


@pytest.fixture(autouse=True)
def _few_at_a_glance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let both books have more requests in a day, and of an account, than are looked at."""
    monkeypatch.setattr("tarazu.store.newest.LOOKED_AT_MAX", 50)
    monkeypatch.setattr("tarazu.service.shop_report.NEWEST_MAX", 20)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_finds_its_rows_by_an_index(large: Books, page: str) -> None:
    """No statement of it goes through all requests, or all daily usage, on either store."""
    with transaction(large.engine, read_only=True) as connection, plans(connection) as steps:
        PAGES[page](connection)
    scans = SCANS[large.engine.dialect.name]
    assert steps
    assert [step for step in steps if any(scan in step for scan in scans)] == []


@pytest.mark.parametrize("page", PAGES)
def test_a_page_of_ten_times_larger_books_reads_as_much(small: Books, large: Books, page: str) -> None:
    """Rows on PostgreSQL, steps of the machine on SQLite: a tenth more at most, for deeper indexes."""
    before, after = (read_by(books, PAGES[page]) for books in (small, large))
    assert before > 0
    assert after <= before * 1.1 + 10, (before, after)


def read_by(books: Books, page: Callable[[Connection], object]) -> int:
    """Measure what a page reads."""
    with transaction(books.engine, read_only=True) as connection:
        if connection.dialect.name == "sqlite":
            with steps_counted(connection) as steps:
                page(connection)
            return len(steps)
        before = sum(rows_read(connection, metadata.tables).values())
        page(connection)
        return sum(rows_read(connection, metadata.tables).values()) - before
