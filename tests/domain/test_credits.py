"""Credits: one source for each request, and what a hold took goes back where it came from, or nowhere."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.domain.credits import (
    Means,
    Source,
    give_back,
    is_low,
    means_of,
    quota_remaining,
    source_for,
    take,
    turn_page,
)
from tests.support.values import make_account, make_catalogue, make_hold, make_model, make_plan

amounts = st.integers(0, 1_000)


@pytest.mark.parametrize(
    ("quota", "used", "balance", "cost", "source"),
    [
        (10, 0, 0, 1, Source.PLAN),
        (10, 0, 100, 1, Source.PLAN),
        (10, 9, 0, 1, Source.PLAN),
        (10, 10, 1, 1, Source.BALANCE),
        (10, 10, 0, 1, None),
        (10, 0, 0, 10, Source.PLAN),
        (10, 0, 0, 11, None),
        (10, 6, 5, 5, Source.BALANCE),
        (10, 6, 4, 5, None),
        (10, 12, 0, 1, None),
        (10, 12, 1, 1, Source.BALANCE),
        (0, 0, 0, 1, None),
        (0, 0, 1, 1, Source.BALANCE),
        (0, 0, 0, 0, Source.PLAN),
        (10, 10, 0, 0, Source.PLAN),
        (10, 12, 0, 0, Source.PLAN),
        (None, 0, 5, 5, Source.BALANCE),
        (None, 0, 4, 5, None),
        (None, 0, 5, 0, Source.BALANCE),
    ],
)
def test_one_source_covers_the_whole_cost(
    quota: int | None, used: int, balance: int, cost: int, source: Source | None
) -> None:
    """The plan where its remaining quota covers all of it, else the balance where that does; never some of each."""
    plan = None if quota is None else make_plan(monthly_credits=quota)
    assert source_for(make_account(used=used, balance=balance), plan, cost) is source


def test_remaining_quota_is_not_negative() -> None:
    """After a change to a smaller plan nothing is left, and nothing is owed."""
    assert quota_remaining(make_account(used=12), make_plan(monthly_credits=10)) == 0
    assert quota_remaining(make_account(used=3), make_plan(monthly_credits=10)) == 7
    assert quota_remaining(make_account(used=3), None) == 0


@given(amounts, amounts, st.none() | amounts, st.lists(st.sampled_from([0, 1, 5, 100]), min_size=1, max_size=3))
def test_means_say_what_an_admission_would(used: int, balance: int, quota: int | None, prices: list[int]) -> None:
    """Nothing is refused, some is, or all is: for every account, plan and catalogue."""
    models = {f"m{place}": make_model(f"m{place}", price) for place, price in enumerate(prices)}
    plan = None if quota is None else make_plan(monthly_credits=quota)
    catalogue = make_catalogue(models=list(models.values()), plans=[] if plan is None else [plan])
    account = make_account(used=used, balance=balance, plan=None if plan is None else plan.name)
    means = means_of(account, catalogue)
    paid = [price for price in prices if source_for(account, plan, price) is not None]
    is_offered = plan is not None or balance > 0
    assert (means is Means.NO_OFFER) == (not is_offered)
    if is_offered:
        assert (means is Means.NONE) == (not paid)
        assert (means is Means.FREE_ONLY) == (bool(paid) and not any(paid) and any(prices))
    if means is Means.LOW:
        assert 5 * (max(0, (quota or 0) - used) + balance) <= (quota or 0)


@pytest.mark.parametrize(("left", "whole", "said"), [(20, 100, True), (21, 100, False), (0, 1, True), (0, 0, False)])
def test_four_fifths_used_is_low(left: int, whole: int, *, said: bool) -> None:
    """From the very credit on; of nothing, nothing is used."""
    assert is_low(left, whole) is said


@given(amounts, amounts, amounts, st.none() | amounts)
def test_what_is_taken_was_there(used: int, balance: int, cost: int, quota: int | None) -> None:
    """Whatever the figures, quota is not exceeded, the balance not overdrawn, and only one of them moves."""
    account = make_account(used=used, balance=balance)
    plan = None if quota is None else make_plan(monthly_credits=quota)
    source = source_for(account, plan, cost)
    if source is None:
        assert balance < cost
        return
    after = take(account, cost, source)
    assert (after.used - used, balance - after.balance) == ((cost, 0) if source is Source.PLAN else (0, cost))
    assert after.balance >= 0
    assert after.used <= max(used, quota or 0)


@given(amounts, amounts, amounts, st.sampled_from(Source))
def test_giving_back_undoes_taking(used: int, balance: int, cost: int, source: Source) -> None:
    """Within the month, a hold that ends without a charge has cost nothing."""
    account = make_account(used=used, balance=balance + cost)
    hold = make_hold(credits=cost, source=source)
    assert give_back(take(account, cost, source), hold) == account


def test_a_return_after_the_month_has_turned_does_not_touch_the_new_quota() -> None:
    """The quota of a month that has passed is past."""
    account = turn_page(make_account(used=40), "2026-03", 0)
    assert give_back(account, make_hold(credits=5, source=Source.PLAN, period="2026-02")) == account


def test_a_return_to_the_balance_is_made_in_any_month() -> None:
    """The balance knows no months."""
    account = make_account(period="2026-03", used=7, balance=1)
    given_back = give_back(account, make_hold(credits=5, source=Source.BALANCE, period="2026-02"))
    assert (given_back.used, given_back.balance) == (7, 6)


@pytest.mark.parametrize(("period", "used"), [("2026-01", 0), ("2025-11", 7)])
def test_a_page_has_what_is_used_of_its_own_month_alone(period: str, used: int) -> None:
    """Neither unused quota nor what was spent of it carries over, onwards or back; the balance stays."""
    turned = turn_page(make_account(period="2025-12", used=40, balance=9), period, used)
    assert (turned.period, turned.used, turned.balance) == (period, used, 9)
