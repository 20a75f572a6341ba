"""On PostgreSQL requests are cut by month: made ahead, once, whoever makes them."""

from concurrent.futures import ThreadPoolExecutor

from tarazu.store.engine import transaction
from tarazu.store.partitions import prepare_partitions
from tests.support.at_once import wait_until
from tests.support.books import Books, charge, postgresql_only
from tests.support.values import held, instant_ms, make_account, make_key

PERIODS = ("2031-12", "2032-01")
PARTITIONS = ["requests_2031_12", "requests_2032_01"]


@postgresql_only
def test_what_is_there_is_not_made_again(books: Books) -> None:
    """Only the months that are missing are made, and told."""
    with transaction(books.engine) as connection:
        assert prepare_partitions(connection, PERIODS[:1]) == PARTITIONS[:1]
        assert prepare_partitions(connection, PERIODS) == PARTITIONS[1:]


@postgresql_only
def test_a_month_that_came_before_its_partition_keeps_no_other_from_being_made(books: Books) -> None:
    """Of a clock that was years ahead, say. Its requests stay where they are, charged and audited as all are."""
    books.add(make_account(), make_key())
    books.clock.now_ms = instant_ms("2031-12-05T00:00:00")
    early, late = held(books.admit()), held(books.admit())
    books.run(charge(early))
    with transaction(books.engine) as connection:
        assert prepare_partitions(connection, PERIODS) == PARTITIONS[1:]
    books.run(charge(late))
    held(books.admit())
    assert books.rows("SELECT tableoid::regclass::text, count(*) FROM requests GROUP BY 1") == [("requests_default", 3)]
    books.assert_balanced()
    with transaction(books.engine) as connection:
        assert prepare_partitions(connection, PERIODS) == []


@postgresql_only
def test_two_processes_that_start_at_once_make_each_month_once(books: Books) -> None:
    """The second waits for the first, and finds all made."""

    def prepare() -> list[str]:
        with transaction(books.engine) as connection:
            return prepare_partitions(connection, PERIODS)

    def waits() -> bool:
        query = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        return books.rows(query) != []

    with ThreadPoolExecutor(1) as pool:
        with transaction(books.engine) as connection:
            assert prepare_partitions(connection, PERIODS) == PARTITIONS
            second = pool.submit(prepare)
            wait_until(waits)
        assert second.result() == []
