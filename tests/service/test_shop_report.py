"""The shop at a glance: what has come lately, what is used today, and who the accounts are."""

from functools import partial
from zoneinfo import ZoneInfo

import pytest

from tarazu.domain.accounts import AccountStatus
from tarazu.domain.calendar import DayRange, day_of
from tarazu.domain.credits import Reason
from tarazu.service.shop_report import Lately, ShopReport, care, sales, shop_report
from tarazu.store.engine import transaction
from tarazu.store.operations import Sweep
from tarazu.store.shop import AccountUsage, DayFigures, WithoutReply, accounts_by_status
from tarazu.store.usage import Usage
from tests.support.asking import ask
from tests.support.books import Books, charge, release
from tests.support.values import DAY_MS, NOON_MS, instant_ms, make_account, make_catalogue, make_key

pytestmark = pytest.mark.both_stores

HOUR_MS = 3_600_000
TEHRAN = ZoneInfo("Asia/Tehran")


@pytest.fixture
def books(books: Books) -> Books:
    """Fill the books with two accounts of one key each."""
    books.add(make_account(name="Ada"), make_account(id="acc_2", name="Grace"))
    books.add(make_key(1), make_key(2, account_id="acc_2"))
    return books


def shop_of(books: Books, now_ms: int = NOON_MS) -> ShopReport:
    """Look at the shop at an instant."""
    with transaction(books.engine, read_only=True) as connection:
        return shop_report(connection, books.catalogue.zone, now_ms)


def counted(lately: Lately) -> tuple[int, int, int, int, int]:
    """Tell how many requests there were, what has become of them, and what was paid."""
    return lately.requests, lately.charged, lately.failed, lately.running, lately.credits


def test_an_empty_shop_can_be_looked_at(books: Books) -> None:
    """On the first day there are noughts."""
    seen = shop_of(books)
    assert counted(seen.last_hour) == counted(seen.last_day) == (0, 0, 0, 0, 0)
    assert seen.today == DayFigures(accounts=0, usage=Usage(), top=())
    assert not seen.last_hour.is_cut


def test_the_last_hour_and_the_last_day_are_told(books: Books) -> None:
    """To the millisecond, and with what came after the look left out."""
    for at_ms in (
        NOON_MS - DAY_MS - 1,
        NOON_MS - DAY_MS,
        NOON_MS - HOUR_MS - 1,
        NOON_MS - HOUR_MS,
        NOON_MS,
        NOON_MS + 1,
    ):
        ask(books, at_ms, end=charge)
    seen = shop_of(books)
    assert (seen.last_hour.requests, seen.last_day.requests) == (2, 4)
    assert (seen.last_hour.hours, seen.last_hour.since_ms) == (1, NOON_MS - HOUR_MS)


def test_what_has_become_of_requests_is_told_by_model(books: Books) -> None:
    """Released and swept ones have failed, and their credits are not earned."""
    ask(books, NOON_MS - DAY_MS + 1, model="large")
    books.clock.now_ms = NOON_MS - HOUR_MS
    assert books.run(Sweep()) == [1]
    ask(books, NOON_MS - 4, model="large", end=charge)
    ask(books, NOON_MS - 3, end=release)
    ask(books, NOON_MS - 2, end=charge)
    ask(books, NOON_MS - 1)
    seen = shop_of(books)
    assert counted(seen.last_hour) == (4, 2, 1, 1, 6)
    assert counted(seen.last_day) == (5, 2, 2, 1, 6)
    by_model = [(of.model_id, of.requests, of.charged, of.failed, of.credits) for of in seen.last_day.models]
    assert by_model == [("large", 2, 1, 1, 5), ("small", 3, 1, 1, 1)]


@pytest.mark.parametrize(
    ("number", "p50_ms", "p95_ms"), [(1, 1, 1), (2, 1, 2), (3, 2, 3), (20, 10, 19), (21, 11, 20), (100, 50, 95)]
)
def test_half_of_the_durations_do_not_pass_the_median(books: Books, number: int, p50_ms: int, p95_ms: int) -> None:
    """The nearest rank: a duration that there was, the same on either store."""
    for took_ms in reversed(range(1, number + 1)):
        ask(books, NOON_MS - 1_000 - took_ms, end=charge, took_ms=took_ms)
    (small,) = shop_of(books).last_hour.models
    assert (small.p50_ms, small.p95_ms) == (p50_ms, p95_ms)


def test_only_charged_requests_have_a_duration(books: Books) -> None:
    """A failure that is quick makes no model look fast; a model without any charged one has none."""
    ask(books, NOON_MS - 9_000, end=charge, took_ms=2_000)
    for _ in range(5):
        ask(books, NOON_MS - 8_000, end=release, took_ms=1)
    ask(books, NOON_MS - 8_000, model="large", end=release)
    ask(books, NOON_MS - 7_000)
    large, small = shop_of(books).last_hour.models
    assert (small.p50_ms, small.p95_ms, large.p50_ms, large.p95_ms) == (2_000, 2_000, None, None)


def test_slow_failures_do_not_move_the_durations(books: Books) -> None:
    """The places are those among the charged requests alone."""
    for took_ms in (1, 2, 3):
        ask(books, NOON_MS - 9_000, end=charge, took_ms=took_ms)
        ask(books, NOON_MS - 8_000, end=release, took_ms=5_000)
    (small,) = shop_of(books).last_hour.models
    assert (small.p50_ms, small.p95_ms) == (2, 3)


def test_of_very_many_requests_the_newest_are_told(books: Books, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says that there were more, and since when the figures hold."""
    monkeypatch.setattr("tarazu.service.shop_report.NEWEST_MAX", 3)
    for back_ms in (5_000, 4_000, 3_000, 2_000):
        ask(books, NOON_MS - back_ms, end=charge, took_ms=1)
    seen = shop_of(books)
    for lately in (seen.last_hour, seen.last_day):
        assert (lately.requests, lately.is_cut, lately.since_ms) == (3, True, NOON_MS - 4_000)


def test_the_last_hour_reaches_into_the_month_before(books: Books) -> None:
    """At the edge of a year too."""
    midnight_ms = instant_ms("2026-01-01")
    for at_ms in (midnight_ms - 1, midnight_ms):
        ask(books, at_ms, end=charge, took_ms=0)
    assert shop_of(books, midnight_ms + 1_000).last_hour.requests == 2


def test_what_is_used_today_is_told_with_those_who_spend_most(books: Books) -> None:
    """Yesterday is past."""
    ask(books, NOON_MS - DAY_MS, end=charge)
    for _ in range(2):
        ask(books, NOON_MS, end=charge)
    ask(books, NOON_MS, key=2, model="large", end=charge)
    grace, ada = Usage(1, 5, 10, 20), Usage(2, 2, 20, 40)
    assert shop_of(books).today == DayFigures(
        accounts=2,
        usage=grace + ada,
        top=(
            AccountUsage(account_id="acc_2", account_name="Grace", usage=grace),
            AccountUsage(account_id="acc_1", account_name="Ada", usage=ada),
        ),
    )


def test_who_has_spent_nothing_today_is_not_told(books: Books) -> None:
    """Neither who has only asked in vain, nor who spends on another day, before this or after it."""
    ask(books, NOON_MS - DAY_MS, end=charge)
    ask(books, NOON_MS, end=release)
    ask(books, NOON_MS + DAY_MS, key=2, end=charge)
    assert shop_of(books).today == DayFigures(accounts=0, usage=Usage(), top=())


def test_today_begins_at_midnight_where_the_shop_is(books: Books) -> None:
    """Half past eight in the evening in UTC is midnight in Tehran."""
    books.catalogue = make_catalogue(zone=TEHRAN)
    ask(books, instant_ms("2026-02-09T20:29:59.999"), end=charge, took_ms=0)
    ask(books, instant_ms("2026-02-09T20:30:00"), key=2, end=charge, took_ms=0)
    seen = shop_of(books)
    assert (seen.day, seen.today.accounts, seen.today.top[0].account_id) == ("2026-02-10", 1, "acc_2")


def test_ten_accounts_are_named_and_all_are_counted(books: Books) -> None:
    """Those beyond the tenth are in the totals."""
    for number in range(3, 15):
        books.add(make_account(id=f"acc_{number}"), make_key(number, account_id=f"acc_{number}"))
        ask(books, NOON_MS, key=number, end=charge)
    today = shop_of(books).today
    assert (len(today.top), today.accounts, today.usage.requests) == (10, 12, 12)


def test_accounts_are_counted_by_status(books: Books) -> None:
    """Also the statuses that nobody has."""
    books.add(make_account(id="acc_3", status=AccountStatus.BLOCKED))
    assert shop_of(books).accounts == {
        AccountStatus.ACTIVE: 2,
        AccountStatus.UNVERIFIED: 0,
        AccountStatus.INACTIVE: 0,
        AccountStatus.BLOCKED: 1,
    }


def test_who_leaves_and_who_runs_out_of_time_is_named(books: Books) -> None:
    """By account, the one with the most first, with how many were charged; failed tries are no one's doing."""
    books.catalogue = make_catalogue(abandoned_per_hour=2)
    for reason in (Reason.ABANDONED, Reason.ABANDONED, Reason.TIMED_OUT):
        ask(books, NOON_MS, end=partial(release, reason=reason))
    ask(books, NOON_MS, end=release)
    ask(books, NOON_MS, key=2, end=partial(release, reason=Reason.TIMED_OUT))
    seen = shop_of(books)
    expected = (
        WithoutReply(account_id="acc_1", account_name="Ada", abandoned=2, timed_out=1, charged=1),
        WithoutReply(account_id="acc_2", account_name="Grace", abandoned=0, timed_out=1, charged=0),
    )
    assert seen.last_hour.without_reply == seen.last_day.without_reply == expected


def test_sales_are_told_by_day_model_and_account(books: Books) -> None:
    """What accounts without a plan have used is money too, at the prices of today; each figure adds up to the total."""
    for at_ms, key in (
        (NOON_MS - 2 * DAY_MS, 1),
        (NOON_MS - DAY_MS, 1),
        (NOON_MS - DAY_MS, 2),
        (NOON_MS, 1),
        (NOON_MS, 2),
    ):
        ask(books, at_ms, key=key, end=charge)
    ask(books, NOON_MS, end=release)
    books.execute("UPDATE accounts SET plan = NULL WHERE id = 'acc_2'")
    model = books.catalogue.models["small"]
    days = DayRange(day_of(NOON_MS - DAY_MS, books.catalogue.zone), day_of(NOON_MS, books.catalogue.zone))
    with transaction(books.engine, read_only=True) as connection:
        sold = sales(connection, books.catalogue, days)
        quiet = sales(connection, books.catalogue, DayRange("2001-01-01", "2001-01-03"))
    assert [line.usage.requests for line in sold.days] == [2, 2]
    assert [(line.id, line.usage.requests) for line in sold.models] == [("small", 4)]
    assert sold.total.usage.requests == 4
    assert sold.of_plans.credits == 2 * model.credits
    assert model.payg_amount
    assert [line.money for line in sold.days] == [model.payg_amount] * 2
    assert sold.total.money == 2 * model.payg_amount
    assert [(line.account_id, line.usage.requests) for line in sold.accounts.top] == [("acc_1", 2), ("acc_2", 2)]
    assert (len(quiet.days), quiet.models, quiet.total.usage, quiet.accounts.top) == (3, (), Usage(), ())


def test_the_requests_of_each_hour_are_counted_with_those_that_failed(books: Books) -> None:
    """Of the last day, the latest hour last."""
    for at_ms, end in (
        (NOON_MS - DAY_MS + 1, charge),
        (NOON_MS - HOUR_MS, release),
        (NOON_MS - HOUR_MS + 1, charge),
        (NOON_MS, release),
    ):
        ask(books, at_ms, end=end)
    found = shop_of(books, NOON_MS).hours
    assert len(found) == 24
    assert found[-1].since_ms == NOON_MS + 1 - HOUR_MS
    assert [(hour.requests, hour.failed) for hour in found[-2:]] == [(1, 1), (2, 1)]
    assert sum(hour.requests for hour in found) == 4


def test_accounts_that_need_care_are_counted(books: Books) -> None:
    """Active ones on a plan with nothing or little left of quota and balance this month; and who is not verified."""
    plan = books.catalogue.plans["basic"]
    period = day_of(NOON_MS, books.catalogue.zone)[:7]
    books.add(
        make_account(id="acc_3", plan=plan.name, used=plan.monthly_credits, period=period, balance=0),
        make_account(id="acc_4", plan=plan.name, used=plan.monthly_credits, period=period, balance=1),
        make_account(id="acc_5", plan=plan.name, used=plan.monthly_credits, period="2001-01", balance=0),
        make_account(
            id="acc_6",
            plan=plan.name,
            used=plan.monthly_credits,
            period=period,
            balance=0,
            status=AccountStatus.BLOCKED,
        ),
        make_account(id="acc_7", status=AccountStatus.UNVERIFIED),
        make_account(
            id="acc_8", plan=plan.name, used=plan.monthly_credits, period=period, balance=plan.monthly_credits
        ),
    )
    with transaction(books.engine, read_only=True) as connection:
        found = care(connection, books.catalogue, NOON_MS, accounts_by_status(connection))
    assert (found.exhausted, found.low, found.unverified) == (1, 1, 1)
    books.execute("UPDATE accounts SET used = 0, balance = 0")
