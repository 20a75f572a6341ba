"""A batch that waits for rows of another process goes on with what that has made of them (PostgreSQL)."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import Connection

from tarazu.store.engine import transaction
from tarazu.store.operations import Admit
from tests.support.books import Books
from tests.support.patience import PATIENCE_S
from tests.support.values import held, make_account, make_asked, make_catalogue, make_key, make_plan

pytestmark = pytest.mark.parametrize("store_kind", ["postgresql"], indirect=True)

ACCOUNTS = 1_000
"""So many that PostgreSQL finds them by an index."""
BATCH = 40
RUNS = 15
"""The driver prepares a statement that it has run five times; after five more its plan knows nothing of the batch."""


def test_accounts_that_another_process_changes_meanwhile_are_found(books: Books) -> None:
    """All of them, also by a statement that is prepared, so that no batch has to be run again one by one."""
    numbers = range(ACCOUNTS)
    books.catalogue = make_catalogue(plans=[make_plan(monthly_credits=1_000, requests_per_minute=1_000)])
    books.add(*(make_account(id=f"acc_{number:03}") for number in numbers))
    books.add(*(make_key(number, account_id=f"acc_{number:03}") for number in numbers))
    with transaction(books.engine) as connection:
        connection.exec_driver_sql("ANALYZE")
    for _ in range(RUNS):
        books.run(*_batch())
    other = books.open_engine({})
    with ThreadPoolExecutor(1) as threads:
        with transaction(other) as connection:
            connection.exec_driver_sql("UPDATE accounts SET balance = balance WHERE id < 'acc_020'")
            decisions = threads.submit(books.run, *_batch())
            _await_waiting(connection)
        assert len([held(decision) for decision in decisions.result(PATIENCE_S)]) == BATCH
    other.dispose()


def _batch() -> list[Admit]:
    return [Admit(make_asked(number)) for number in range(BATCH)]


def _await_waiting(connection: Connection) -> None:
    """Wait until somebody waits for a row."""
    until_s = time.monotonic() + PATIENCE_S
    while not connection.exec_driver_sql("SELECT count(*) FROM pg_locks WHERE NOT granted").scalar_one():
        assert time.monotonic() < until_s
        time.sleep(0.01)
