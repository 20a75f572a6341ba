"""Sweeps of several processes: one gives back what is overdue, and nobody waits for it."""

from tarazu.store.batch import run_batch
from tarazu.store.engine import transaction
from tarazu.store.operations import Sweep
from tests.support.books import Books, postgresql_only
from tests.support.values import DAY_MS, make_account, make_key


@postgresql_only
def test_a_sweep_beside_another_gives_way_at_once(books: Books) -> None:
    """It finds nothing to do, waits for no lock, and the hold comes back once."""
    books.add(make_account(), make_key())
    books.admit()
    books.clock.now_ms += DAY_MS
    with transaction(books.engine) as first:
        assert run_batch(first, [Sweep()], books.catalogue, books.clock()) == [1]
        with transaction(books.engine) as second:
            second.exec_driver_sql("SET LOCAL lock_timeout = '1ms'")
            assert run_batch(second, [Sweep()], books.catalogue, books.clock()) == [0]
    assert books.states() == ["swept"]
    assert books.figures() == (0, 0)
    books.assert_balanced()


@postgresql_only
def test_the_turn_to_sweep_ends_with_the_transaction_that_has_it(books: Books) -> None:
    """Also when that fails: the next sweep finds what it had begun."""
    books.add(make_account(), make_key())
    books.admit()
    books.clock.now_ms += DAY_MS
    with books.engine.connect() as dying, dying.begin() as transaction_:
        assert run_batch(dying, [Sweep()], books.catalogue, books.clock()) == [1]
        transaction_.rollback()
    assert books.run(Sweep()) == [1]
    assert books.states() == ["swept"]
