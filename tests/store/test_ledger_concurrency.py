"""Many at once: credits and places are exact, over keys, ledgers and connections (field faults, Credits and Limits)."""

import asyncio
from collections.abc import Sequence

import pytest
from sqlalchemy import Connection

from tarazu.domain.accounts import AccountStatus, Intake
from tarazu.domain.admission import Decision
from tarazu.domain.credits import Hold
from tarazu.domain.errors import Error
from tarazu.store.accounts import update_account
from tarazu.store.engine import transaction
from tarazu.store.intake import write_intake
from tarazu.store.keys import revoke_key
from tarazu.store.ledger import Ledger
from tests.support.books import Books, make_topup
from tests.support.ledgers import charge, paused, running
from tests.support.patience import PATIENCE_S
from tests.support.values import (
    held,
    make_account,
    make_asked,
    make_catalogue,
    make_key,
    make_plan,
    refused,
)

pytestmark = [pytest.mark.both_stores, pytest.mark.anyio]


async def admit_at_once(ledgers: Sequence[Ledger], count: int, keys: int = 1) -> list[Decision]:
    """Ask for so many admissions at the same time, over keys 1 to `keys` and all ledgers in turn."""
    return await asyncio.gather(
        *(ledgers[number % len(ledgers)].admit(make_asked(1 + number % keys)) for number in range(count))
    )


def count_errors(decisions: Sequence[Decision]) -> dict[Error | None, int]:
    """Count the outcomes: None stands for an admission."""
    errors = [None if isinstance(each.outcome, Hold) else refused(each).error for each in decisions]
    return {error: errors.count(error) for error in errors}


def add_five_keys(books: Books, **account: object) -> None:
    """Add an account with keys 1 to 5."""
    books.add(make_account(**account), *(make_key(number) for number in range(1, 6)))


async def test_three_credits_and_sixty_calls_over_five_keys_are_exactly_three_holds(books: Books) -> None:
    """However many arrive at once, the balance pays for what it covers and never goes below zero."""
    add_five_keys(books, plan=None)
    books.add(make_topup(3))
    async with running(books) as ledger:
        decisions = await admit_at_once([ledger], 60, keys=5)
    # The 57 others found a balance of nothing, and no plan.
    assert count_errors(decisions) == {None: 3, Error.UPGRADE_REQUIRED: 57}
    assert books.figures() == (0, 0)
    books.assert_balanced()


async def test_a_quota_of_three_and_sixty_calls_over_two_ledgers_are_exactly_three_holds(books: Books) -> None:
    """Two processes on one database: each with a ledger and a connection of its own."""
    books.catalogue = make_catalogue(plans=[make_plan(monthly_credits=3)])
    add_five_keys(books)
    other = books.open_engine({})
    async with running(books) as one, running(books, other) as two:
        decisions = await admit_at_once([one, two], 60, keys=5)
    other.dispose()
    assert count_errors(decisions) == {None: 3, Error.API_CREDITS_EXHAUSTED: 57}
    assert books.figures() == (3, 0)
    books.assert_balanced()


async def test_a_limit_of_three_and_forty_calls_at_once_are_exactly_three(books: Books) -> None:
    """The account's limit, shared by its keys, not multiplied by the number of ledgers."""
    books.catalogue = make_catalogue(plans=[make_plan(requests_per_minute=3)])
    add_five_keys(books)
    other = books.open_engine({})
    async with running(books) as one, running(books, other) as two:
        decisions = await admit_at_once([one, two], 40, keys=5)
    other.dispose()
    assert count_errors(decisions) == {None: 3, Error.RATE_LIMIT_EXCEEDED: 37}
    assert books.account().window.taken == 3
    assert sum(books.key(number).window.taken for number in range(1, 6)) == 3


async def test_a_keys_limit_of_three_and_forty_calls_at_once_are_exactly_three(books: Books) -> None:
    """The key's own limit; another key of the account goes on."""
    books.add(make_account(), make_key(1, limit_per_minute=3), make_key(2))
    async with running(books) as ledger:
        assert count_errors(await admit_at_once([ledger], 40)) == {None: 3, Error.RATE_LIMIT_EXCEEDED: 37}
        held(await ledger.admit(make_asked(2)))
    assert books.account().window.taken == 4


async def test_the_first_calls_of_a_new_month_are_exact(books: Books) -> None:
    """Quota 1, spent last month; 8 parallel first calls of this one: one hold."""
    books.catalogue = make_catalogue(plans=[make_plan(monthly_credits=1)])
    add_five_keys(books, period="2026-01", used=1)
    async with running(books) as ledger:
        decisions = await admit_at_once([ledger], 8, keys=5)
    assert count_errors(decisions) == {None: 1, Error.API_CREDITS_EXHAUSTED: 7}
    assert (books.account().period, books.figures()) == ("2026-02", (1, 0))
    books.assert_balanced()


async def test_admissions_charges_and_releases_at_once_stay_balanced(books: Books) -> None:
    """Two ledgers, each ending holds of both, while new ones come."""
    add_five_keys(books)
    other = books.open_engine({})
    async with running(books) as one, running(books, other) as two:

        async def serve(number: int) -> bool | None:
            first, second = (one, two) if number % 2 else (two, one)
            decision = await first.admit(make_asked(1 + number % 5))
            if not isinstance(decision.outcome, Hold):
                return None
            if number % 3 == 0:
                second.release(decision.outcome, tries=1)
                return False
            return await second.charge(decision.outcome, tries=1, prompt_tokens=1, completion_tokens=1)

        outcomes = await asyncio.gather(*(serve(number) for number in range(60)))
    other.dispose()
    assert (outcomes.count(True), outcomes.count(False)) == (40, 20)
    assert (books.states().count("charged"), books.states().count("released")) == (40, 20)
    assert books.figures() == (40, 0)
    books.assert_balanced()


@pytest.mark.parametrize("store_kind", ["postgresql"], indirect=True)
async def test_batches_of_two_processes_over_the_same_accounts_do_not_deadlock(books: Books) -> None:
    """Asked for in opposite orders, admissions and charges lock their rows in one: who has to wait waits for the other.

    A third process has one account in the middle locked, until both batches have locked all that they can.
    """
    numbers = range(1, 13)
    for number in numbers:
        books.add(make_account(id=f"acc_{number:02}"), make_key(number, account_id=f"acc_{number:02}"))
    other = books.open_engine({})
    async with running(books) as one, running(books, other) as two:
        holds = [held(await one.admit(make_asked(number))) for number in numbers for _ in range(2)]
        with transaction(books.engine) as connection:
            connection.exec_driver_sql("SELECT 1 FROM accounts WHERE id = 'acc_06' FOR UPDATE")
            async with paused(one), paused(two):
                asked = [one.admit(make_asked(number)) for number in numbers]
                asked += [two.admit(make_asked(number)) for number in reversed(numbers)]
                charged = [charge(one, hold) for hold in holds[::2]]
                charged += [charge(two, hold) for hold in reversed(holds[1::2])]
                answers = asyncio.gather(*asked), asyncio.gather(*charged)
            async with asyncio.timeout(PATIENCE_S):
                while waiting_for_locks(connection) < 2:  # noqa: ASYNC110 - nothing tells of a wait but the database
                    await asyncio.sleep(0.01)
        decisions, charges = await answers[0], await answers[1]
    other.dispose()
    assert count_errors(decisions) == {None: 24}
    assert charges == [True] * 24
    assert sum(used for (used,) in books.rows("SELECT used FROM accounts")) == 48
    books.assert_balanced()


def waiting_for_locks(connection: Connection) -> int:
    """Count the transactions that wait for a row of another."""
    query = "SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted"
    waiting: int = connection.exec_driver_sql(query).scalar_one()
    return waiting


def revoke(connection: Connection) -> None:
    """Revoke key 1."""
    revoke_key(connection, make_key(1).id, 0)


def block(connection: Connection) -> None:
    """Block the account."""
    update_account(connection, "acc_1", plan="basic", status=AccountStatus.BLOCKED)


def stop(connection: Connection) -> None:
    """Stop the intake."""
    write_intake(connection, Intake(stopped=True, retry_after_s=5))


def empty(connection: Connection) -> None:
    """Take the plan away."""
    update_account(connection, "acc_1", plan=None, status=AccountStatus.ACTIVE)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (revoke, Error.INVALID_API_KEY),
        (block, Error.ACCOUNT_UNAVAILABLE),
        (stop, Error.SYSTEM_STOPPED),
        (empty, Error.UPGRADE_REQUIRED),
    ],
)
async def test_what_another_connection_writes_holds_from_the_next_admission_on(
    books: Books, change: object, error: Error
) -> None:
    """Nothing about keys, accounts or intake is cached; a hold from before can still be charged."""
    add_five_keys(books)
    other = books.open_engine({})
    async with running(books) as ledger:
        hold = held(await ledger.admit(make_asked()))
        with transaction(other) as connection:
            assert callable(change)
            change(connection)
        assert refused(await ledger.admit(make_asked())).error is error
        assert await ledger.charge(hold, tries=1, prompt_tokens=1, completion_tokens=1) is True
    other.dispose()
    books.assert_balanced()


async def test_a_top_up_by_another_connection_serves_the_next_admission(books: Books) -> None:
    """And a resumed intake does."""
    add_five_keys(books, plan=None)
    books.execute("UPDATE intake SET stopped = 1")
    async with running(books) as ledger:
        assert refused(await ledger.admit(make_asked())).error is Error.SYSTEM_STOPPED
        books.execute("UPDATE intake SET stopped = 0")
        assert refused(await ledger.admit(make_asked())).error is Error.UPGRADE_REQUIRED
        books.add(make_topup(1))
        held(await ledger.admit(make_asked()))
    books.assert_balanced()
