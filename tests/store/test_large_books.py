"""The large books that benchmarks are run on: right in every figure, whatever their size."""

import pytest

from bench.books import Size, account_id, fill, key_of
from tarazu.domain.keys import parse
from tarazu.service.identifiers import COMPLETION_PREFIX, first_completion_id, new_unique_part
from tests.support.books import Books

pytestmark = pytest.mark.both_stores

SIZE = Size(requests=3_000, accounts=7, keys_per_account=2, days=40, holds=5, idempotency_keys=11)


@pytest.mark.parametrize("slice_", [1_000, 1_000_000])
def test_large_books_balance(books: Books, monkeypatch: pytest.MonkeyPatch, slice_: int) -> None:
    """They have as many rows as was asked for, and an audit finds nothing."""
    monkeypatch.setattr("bench.books.SLICE", slice_)
    fill(books.engine, SIZE)
    report = books.audit(overdue_before_ms=SIZE.end_ms)
    assert (report.accounts, report.requests, report.differences) == (7, 3_000, ())
    counts = {
        table: books.rows(f"SELECT count(*) FROM {table}")[0][0]  # noqa: S608 - the names below
        for table in ("keys", "topups", "idempotency_keys")
    }
    assert counts == {"keys": 14, "topups": 7, "idempotency_keys": 11}


def test_large_books_have_something_of_everything(books: Books) -> None:
    """Every state, both sources, all keys, models and days; each account has used some quota and has a balance."""
    fill(books.engine, SIZE)
    columns = ("state", "source", "key_id", "model_id", "day")
    counted = books.rows(f"SELECT {', '.join(f'count(DISTINCT {name})' for name in columns)} FROM requests")  # noqa: S608
    assert counted == [(4, 2, 14, 3, 40)]
    assert books.rows("SELECT count(*) FROM requests WHERE state = 'held'") == [(5,)]
    assert books.rows("SELECT min(balance) > 0, min(used) > 0 FROM accounts") == [(True, True)]


def test_the_ids_of_requests_in_large_books_tell_their_time(books: Books) -> None:
    """As those that the service makes."""
    fill(books.engine, SIZE)
    made = books.rows("SELECT id, created_at_ms FROM requests ORDER BY id")
    assert [at_ms for _, at_ms in made] == sorted(at_ms for _, at_ms in made)
    assert all(id_.startswith(first_completion_id(at_ms)) for id_, at_ms in made)
    assert {len(id_) for id_, _ in made} == {len(COMPLETION_PREFIX + new_unique_part(0))}


def test_the_keys_of_large_books_can_be_presented(books: Books) -> None:
    """A benchmark of the service calls with them: each by its number, the first account's first."""
    fill(books.engine, SIZE)
    presented = parse(key_of(3).text)
    assert presented is not None
    [(owner, digest)] = books.rows("SELECT account_id, digest FROM keys WHERE id = :id", id=presented.id)
    assert owner == account_id(1)
    assert presented.matches(digest)
