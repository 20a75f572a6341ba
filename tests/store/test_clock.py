"""Where time has edges: minutes, months, years, leap days, summer time, and clocks that step. On real books."""

import time
from collections.abc import Iterator
from zoneinfo import ZoneInfo

import pytest

from tarazu.domain.admission import Caller
from tarazu.domain.credits import Hold
from tarazu.domain.errors import Error
from tarazu.store.operations import Admit, Identify, Sweep
from tests.support.books import Books, charge, release
from tests.support.ledgers import running
from tests.support.statements import seen
from tests.support.values import (
    MINUTE_MS,
    Clock,
    held,
    instant_ms,
    make_account,
    make_asked,
    make_catalogue,
    make_key,
    make_plan,
    present,
    refused,
)

pytestmark = [pytest.mark.both_stores, pytest.mark.anyio]

QUOTA = 3
HOUR_MS = 60 * MINUTE_MS


@pytest.fixture(params=["Pacific/Kiritimati", "Pacific/Pago_Pago"])
def process_zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Run the process at one end of the world's time zones, UTC+14 or UTC-11."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def books(books: Books) -> Books:
    """One account with two keys, on a plan of three credits a month."""
    books.catalogue = make_catalogue(plans=[make_plan(monthly_credits=QUOTA)])
    books.add(make_account(), make_key(1), make_key(2))
    return books


def at(books: Books, moment: str, zone: str | None = None) -> None:
    """Set the clock of the books, and their time zone."""
    books.clock.now_ms = instant_ms(moment)
    if zone is not None:
        books.catalogue = make_catalogue(plans=[make_plan(monthly_credits=QUOTA)], zone=ZoneInfo(zone))


def spend(books: Books, requests: int) -> list[str]:
    """Ask for so many replies of one credit and charge those that are admitted; answer with the periods that paid."""
    answers = books.run(*(Admit(make_asked()) for _ in range(requests)))
    holds = [answer.outcome for answer in answers if isinstance(answer.outcome, Hold)]
    books.run(*(charge(hold) for hold in holds))
    books.assert_balanced()
    return [hold.period for hold in holds]


# The minute.


def test_the_last_millisecond_of_a_minute_is_of_its_window(books: Books) -> None:
    """At :59.999 the window is full, at :00.000 it is new."""
    books.catalogue = make_catalogue(plans=[make_plan(requests_per_minute=1)])
    at(books, "2026-02-10T12:00:59.999")
    held(books.admit())
    assert refused(books.admit()).error is Error.RATE_LIMIT_EXCEEDED
    at(books, "2026-02-10T12:01:00.000")
    held(books.admit())
    assert refused(books.admit()).error is Error.RATE_LIMIT_EXCEEDED


def test_a_clock_that_steps_back_over_the_edge_of_a_minute_gives_no_place_twice(books: Books) -> None:
    """Two seconds back: the new minute's window stays open, and stays full."""
    books.catalogue = make_catalogue(plans=[make_plan(requests_per_minute=2)])
    at(books, "2026-02-10T12:01:00.500")
    held(books.admit())
    at(books, "2026-02-10T12:00:58.500")
    held(books.admit())
    assert refused(books.admit()).error is Error.RATE_LIMIT_EXCEEDED
    at(books, "2026-02-10T12:01:59.999")
    assert refused(books.admit()).error is Error.RATE_LIMIT_EXCEEDED
    at(books, "2026-02-10T12:02:00.000")
    held(books.admit())


def test_a_clock_that_was_an_hour_ahead_keeps_nobody_out_for_an_hour(books: Books) -> None:
    """The full window of the wrong time is turned back, for the account and for the key."""
    books.catalogue = make_catalogue(plans=[make_plan(requests_per_minute=1)])
    books.clock.now_ms += HOUR_MS
    held(books.admit())
    assert refused(books.admit()).error is Error.RATE_LIMIT_EXCEEDED
    books.clock.now_ms -= HOUR_MS
    held(books.admit())
    refusal = refused(books.admit())
    assert refusal.error is Error.RATE_LIMIT_EXCEEDED
    assert refusal.retry_after_s == 60


# The month and the year.


@pytest.mark.usefixtures("process_zone")
@pytest.mark.parametrize(
    ("zone", "edge", "before", "after"),
    [
        ("UTC", "2026-03-01T00:00:00", "2026-02-28", "2026-03-01"),
        ("Asia/Tehran", "2026-02-28T20:30:00", "2026-02-28", "2026-03-01"),
        ("Pacific/Kiritimati", "2026-02-28T10:00:00", "2026-02-28", "2026-03-01"),
        ("Pacific/Pago_Pago", "2026-03-01T11:00:00", "2026-02-28", "2026-03-01"),
        ("Asia/Tehran", "2026-12-31T20:30:00", "2026-12-31", "2027-01-01"),
        ("UTC", "2027-01-01T00:00:00", "2026-12-31", "2027-01-01"),
        # A leap day, and the year that has none though four divides it.
        ("UTC", "2028-02-29T00:00:00", "2028-02-28", "2028-02-29"),
        ("Asia/Tehran", "2028-02-29T20:30:00", "2028-02-29", "2028-03-01"),
        ("UTC", "2100-03-01T00:00:00", "2100-02-28", "2100-03-01"),
        # Summer time has ended in Tehran for good in 2022: an offset of 4:30 before, of 3:30 since.
        ("Asia/Tehran", "2022-08-31T19:30:00", "2022-08-31", "2022-09-01"),
        ("Asia/Tehran", "2022-09-30T20:30:00", "2022-09-30", "2022-10-01"),
        # The first hour of October is skipped: after 23:59 comes 01:00.
        ("America/Asuncion", "2023-10-01T04:00:00", "2023-09-30", "2023-10-01"),
        # The first hour of November comes twice, and both are of November.
        ("America/Havana", "2026-11-01T04:00:00", "2026-10-31", "2026-11-01"),
        # Samoa left out 30 December 2011 to be on the other side of the date line.
        ("Pacific/Apia", "2011-12-30T10:00:00", "2011-12-29", "2011-12-31"),
    ],
)
def test_day_and_quota_turn_at_midnight_of_the_configured_zone(
    books: Books, zone: str, edge: str, before: str, after: str
) -> None:
    """A millisecond before it the old quota is spent, with it there is a new one; the usage is that of each day."""
    at(books, edge, zone)
    books.clock.now_ms -= 1
    assert spend(books, QUOTA + 1) == [before[:7]] * QUOTA
    at(books, edge)
    of_new_month = QUOTA if after[:7] > before[:7] else 0
    assert spend(books, QUOTA + 1) == [after[:7]] * of_new_month
    assert books.rows("SELECT day, credits FROM daily_usage ORDER BY day") == [
        (day, QUOTA) for day in (before, after)[: 2 if of_new_month else 1]
    ]


def test_the_second_of_two_equal_hours_is_of_the_same_month(books: Books) -> None:
    """Havana on 1 November 2026: an hour after midnight it is midnight again, and no quota is new."""
    at(books, "2026-11-01T04:30:00", "America/Havana")
    assert spend(books, QUOTA) == ["2026-11"] * QUOTA
    at(books, "2026-11-01T05:30:00")
    assert spend(books, 1) == []


def test_summer_time_that_ends_over_the_edge_of_a_month_gives_each_month_its_quota_once(books: Books) -> None:
    """In St. John's, on 1 November 2009, the clock went from 00:01 back to 23:01 of October."""
    at(books, "2009-11-01T02:29:59", "America/St_Johns")
    assert spend(books, 2) == ["2009-10"] * 2
    at(books, "2009-11-01T02:30:30")
    assert spend(books, 2) == ["2009-11"] * 2
    at(books, "2009-11-01T02:31:00")  # 23:01 of October again
    assert spend(books, 2) == ["2009-10"]
    at(books, "2009-11-01T03:30:00")
    assert spend(books, 2) == ["2009-11"]


# A clock that steps, and clocks that differ.


def test_a_clock_that_steps_back_over_the_edge_of_a_month_gives_no_quota_twice(books: Books) -> None:
    """Two seconds back it is the old month, with what was used of it; then the new one, with what was used of that."""
    at(books, "2026-02-28T23:59:59")
    assert spend(books, 2) == ["2026-02"] * 2
    at(books, "2026-03-01T00:00:01")
    assert spend(books, 1) == ["2026-03"]
    at(books, "2026-02-28T23:59:59")
    assert spend(books, 2) == ["2026-02"]
    at(books, "2026-03-01T00:00:01")
    assert spend(books, QUOTA) == ["2026-03"] * (QUOTA - 1)


def test_a_clock_that_was_years_ahead_for_a_moment_locks_nobody_out(books: Books) -> None:
    """Back in its month an account has what is left of that month's quota, and in the far one what is left of that."""
    assert spend(books, 1) == ["2026-02"]
    at(books, "2036-05-01T00:00:00")
    assert spend(books, 1) == ["2036-05"]
    at(books, "2026-02-10T12:05:00")
    assert spend(books, QUOTA) == ["2026-02"] * (QUOTA - 1)
    at(books, "2036-05-20T00:00:00")
    assert spend(books, QUOTA) == ["2036-05"] * (QUOTA - 1)


def test_a_clock_that_was_in_1970_for_a_moment_gives_no_quota_of_this_month_again(books: Books) -> None:
    """A machine that has lost the time and finds it again."""
    assert spend(books, QUOTA) == ["2026-02"] * QUOTA
    at(books, "1970-01-01T00:00:10")
    assert spend(books, 1) == ["1970-01"]
    at(books, "2026-02-10T12:05:00")
    assert spend(books, 1) == []


def test_another_time_zone_gives_no_quota_twice(books: Books) -> None:
    """A new catalogue puts the instant back into the old month, whose quota has been spent."""
    at(books, "2026-02-28T22:00:00", "UTC")
    assert spend(books, QUOTA) == ["2026-02"] * QUOTA
    at(books, "2026-02-28T22:00:01", "Asia/Tehran")
    assert spend(books, 1) == ["2026-03"]
    at(books, "2026-02-28T22:00:02", "UTC")
    assert spend(books, 1) == []


def test_a_hold_that_ends_while_the_page_is_another_is_not_counted_when_it_is_turned_back(books: Books) -> None:
    """Released, charged and swept, each is counted by its state when its month is looked at again."""
    at(books, "2026-02-28T23:59:59")
    released, _swept, charged = (held(books.admit()) for _ in range(QUOTA))
    at(books, "2026-03-01T00:00:01")
    books.run(release(released), charge(charged))
    held(books.admit())
    at(books, "2026-02-28T23:59:59")
    assert spend(books, 2) == ["2026-02"]
    at(books, "2026-03-02T00:00:00")
    books.run(Sweep())
    at(books, "2026-02-28T23:59:59")
    assert spend(books, 2) == ["2026-02"]


def test_a_release_in_the_batch_that_turns_the_page_back_is_counted_once(books: Books) -> None:
    """What its row still says when the page is summed up is given back in the same transaction."""
    at(books, "2026-02-28T23:59:59")
    first, second, _third = (held(books.admit()) for _ in range(QUOTA))
    at(books, "2026-03-01T00:00:01")
    held(books.admit())
    at(books, "2026-02-28T23:59:59")
    answers = books.run(Admit(make_asked()), release(first), release(second))
    held(answers[0])
    assert (books.account().period, books.account().used) == ("2026-02", QUOTA - 1)
    books.assert_balanced()


def test_reading_shows_the_page_of_this_month_and_changes_nothing(books: Books) -> None:
    """After a far moment too, and before the first request has turned the page back."""
    spend(books, 2)
    at(books, "2036-05-01T00:00:00")
    spend(books, 1)
    before = books.dump()
    at(books, "2026-02-10T12:05:00")
    caller = books.run(Identify(present()))[0]
    assert isinstance(caller, Caller)
    assert (caller.account.period, caller.account.used) == ("2026-02", 2)
    assert books.dump() == before


async def test_two_processes_a_second_apart_at_the_edge_of_a_month_give_each_quota_once(books: Books) -> None:
    """Asked in turn, the one is in March while the other is still in February: three of each, and no more."""
    other = books.open_engine({})
    books.clock.now_ms = instant_ms("2026-02-28T23:59:59.500")
    async with running(books) as behind:
        books.clock = Clock(instant_ms("2026-03-01T00:00:00.500"))
        async with running(books, other) as ahead:
            outcomes = [
                (await ledger.admit(make_asked())).outcome for _ in range(QUOTA + 2) for ledger in (behind, ahead)
            ]
    other.dispose()
    periods = [outcome.period for outcome in outcomes if isinstance(outcome, Hold)]
    assert periods == ["2026-02", "2026-03"] * QUOTA
    books.assert_balanced()


def test_turning_pages_costs_one_statement_for_all(books: Books) -> None:
    """At the first instant of a month every account turns; the number of statements does not grow with them."""
    for number in range(3, 23):
        books.add(make_account(id=f"acc_{number}"), make_key(number, account_id=f"acc_{number}"))
    books.run(*(Admit(make_asked(number)) for number in range(1, 23)))
    with seen(books.engine) as usual:
        books.run(*(Admit(make_asked(number)) for number in range(1, 23)))
    at(books, "2026-03-01T00:00:00")
    with seen(books.engine) as turning:
        books.run(*(Admit(make_asked(number)) for number in range(1, 23)))
    assert len(turning) == len(usual) + 1
    assert {period for (period,) in books.rows("SELECT DISTINCT period FROM accounts")} == {"2026-03"}
