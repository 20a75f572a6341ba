"""Requests without a reply by the caller's own doing: so many are free in an hour, exact over all processes."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.domain.credits import Reason, forgiven
from tarazu.store.batch import run_batch
from tarazu.store.engine import open_engine, transaction
from tarazu.store.request_history import newest_requests
from tests.support.books import Books, charge, release
from tests.support.values import HOUR_MS, held, make_account, make_catalogue, make_key, make_plan

FREE = 3


@pytest.fixture(autouse=True)
def caller(books: Books) -> None:
    """An account with a key, of which three requests an hour are free."""
    plan = make_plan(monthly_credits=1_000, requests_per_minute=1_000)
    books.catalogue = make_catalogue(plans=[plan], abandoned_per_hour=FREE)
    books.add(make_account(), make_key())


def outcomes(books: Books) -> list[tuple[str, str | None]]:
    """List state and reason of the account's requests, the oldest first."""
    with transaction(books.engine) as connection:
        found = newest_requests(connection, "acc_1", limit=100).rows
    return [(row.state.value, row.reason and row.reason.value) for row in reversed(found)]


@pytest.mark.both_stores
@pytest.mark.parametrize("reason", Reason)
def test_beyond_its_bound_of_an_hour_an_account_is_charged(books: Books, reason: Reason) -> None:
    """Three are given back, two are charged with their prices; the next hour begins anew. The history says why."""
    holds = [held(books.admit(model="large")) for _ in range(5)]
    assert books.run(*(release(hold, reason) for hold in holds)) == [True] * 5
    assert outcomes(books) == [("released", reason.value)] * FREE + [("charged", reason.value)] * 2
    assert books.account().used == 2 * 5
    books.clock.now_ms += HOUR_MS
    assert books.run(release(held(books.admit()), reason)) == [True]
    assert outcomes(books)[-1] == ("released", reason.value)
    assert books.account().used == 2 * 5


@pytest.mark.both_stores
def test_what_is_not_the_callers_doing_is_free_without_bound(books: Books) -> None:
    """A failed try, and one that was swept, are given back, and count for nothing."""
    for _ in range(2 * FREE):
        books.run(release(held(books.admit())))
    books.run(release(held(books.admit()), Reason.ABANDONED))
    assert outcomes(books) == [("released", None)] * 2 * FREE + [("released", "abandoned")]
    assert books.account().used == 0


@pytest.mark.both_stores
def test_none_is_free_where_all_are_charged(books: Books) -> None:
    """A bound of none; whoever asks again for the charge of a reply is told that there was none."""
    books.catalogue = make_catalogue(abandoned_per_hour=0)
    hold = held(books.admit())
    assert books.run(release(hold, Reason.ABANDONED), charge(hold), release(hold)) == [True, True, False]
    assert outcomes(books) == [("charged", "abandoned")]


@pytest.mark.both_stores
def test_processes_that_release_at_once_give_no_more_back(books: Books) -> None:
    """Ten of one account over two processes, in batches of one: three are free."""
    holds = [held(books.admit()) for _ in range(10)]
    engines = [open_engine(books.url) for _ in range(2)]

    def end(place: int) -> None:
        with transaction(engines[place % 2]) as connection:
            run_batch(connection, [release(holds[place], Reason.ABANDONED)], books.catalogue, books.clock())

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(end, range(10)))
    for engine in engines:
        engine.dispose()
    assert sorted(outcomes(books)) == [("charged", "abandoned")] * 7 + [("released", "abandoned")] * FREE


@given(hours=st.lists(st.integers(0, 3), max_size=40), bound=st.integers(0, 5))
def test_no_hour_has_more_free_ones_than_its_bound(hours: list[int], bound: int) -> None:
    """In the order of time each hour gives exactly its bound away, or all that there were."""
    account, free = make_account(), dict.fromkeys(range(4), 0)
    for hour in sorted(hours):
        after = forgiven(account, hour, bound)
        if after is not None:
            account, free[hour] = after, free[hour] + 1
    assert free == {hour: min(bound, hours.count(hour)) for hour in range(4)}


@given(behind=st.lists(st.booleans(), max_size=40), bound=st.integers(0, 5))
def test_two_clocks_on_both_sides_of_an_hour_give_no_more(behind: list[bool], bound: int) -> None:
    """However they take turns: what the later hour has begun, the earlier one goes on with."""
    account, free = make_account(abandoned_hour=8), 0
    for is_behind in behind:
        after = forgiven(account, 8 if is_behind else 9, bound)
        if after is not None:
            account, free = after, free + 1
    in_the_first = next((number for number, is_behind in enumerate(behind) if not is_behind), len(behind))
    assert free <= bound + min(bound, in_the_first)


def test_an_hour_that_a_wrong_clock_has_begun_is_given_up() -> None:
    """Else an account would pay until that hour has come."""
    account = make_account(abandoned_hour=10, abandoned_taken=3)
    assert forgiven(account, 8, 3) == make_account(abandoned_hour=8, abandoned_taken=1)
    assert forgiven(account, 9, 3) is None
