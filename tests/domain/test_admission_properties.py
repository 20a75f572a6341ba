"""Admission: what holds after any sequence of requests, whatever the prices, limits, plans and clock."""

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace

from tarazu.domain.accounts import AccountStatus, Intake
from tarazu.domain.admission import Caller, Decision, admit
from tarazu.domain.calendar import period_of
from tarazu.domain.catalogue import Catalogue, Offer
from tarazu.domain.credits import Hold, Source, give_back, turn_page
from tarazu.domain.errors import Error, Refusal
from tarazu.domain.rate_limit import in_minute
from tests.support.values import (
    DAY_MS,
    MINUTE_MS,
    NOON_MS,
    make_account,
    make_asked,
    make_catalogue,
    make_key,
    make_model,
    make_plan,
)

UP_TO_ROW_7 = {
    Error.INVALID_API_KEY,
    Error.ACCOUNT_UNAVAILABLE,
    Error.SYSTEM_STOPPED,
    Error.RATE_LIMIT_EXCEEDED,
}

catalogues = st.builds(
    lambda prices, quota, per_minute, payg: make_catalogue(
        models=[make_model(id_, price) for id_, price in zip(("free", "small", "large"), prices, strict=True)],
        plans=[make_plan(monthly_credits=quota, requests_per_minute=per_minute), make_plan("none_left", 0)],
        payg=Offer(models=("*",), requests_per_minute=payg),
    ),
    st.tuples(st.just(0), st.integers(1, 5), st.integers(5, 50)),
    st.integers(0, 60),
    st.integers(1, 8),
    st.integers(1, 8),
)
intakes = st.sampled_from([Intake()] * 5 + [Intake(stopped=True)])
callers = st.builds(
    lambda plan, balance, used, status, limit, models: Caller(
        make_key(limit_per_minute=limit, models=models),
        make_account(plan=plan, balance=balance, used=used, status=status),
    ),
    st.sampled_from(["basic", "none_left", "gone", None]),
    st.integers(0, 60),
    st.integers(0, 60),
    st.sampled_from([AccountStatus.ACTIVE] * 5 + [AccountStatus.BLOCKED]),
    st.none() | st.integers(1, 8),
    st.none() | st.just(("small",)),
)
calls = st.lists(
    st.tuples(
        st.sampled_from(["free", "small", "small", "large", None, "unknown", Refusal(error=Error.MESSAGES_REQUIRED)]),
        st.sampled_from([0, 0, 0, 1, 20_000, 60_000, DAY_MS, 31 * DAY_MS, -1, -60_000, -31 * DAY_MS]),
    ),
    max_size=40,
)
"""What is asked for, and how far the clock has gone on (or back) since the call before."""


class Step(Struct, frozen=True):
    """One call: the caller before it, when it came, what was decided, and the caller after it."""

    before: Caller
    now_ms: int
    decision: Decision
    after: Caller


def play(
    catalogue: Catalogue, caller: Caller, intake: Intake, sent: list[tuple[str | Refusal | None, int]]
) -> Iterator[Step]:
    """Decide on one call after the other, each on the rows that the one before it left, on the page of its month."""
    now_ms = NOON_MS
    used = {caller.account.period: caller.account.used}
    for wanted, passed_ms in sent:
        now_ms += passed_ms
        used[caller.account.period] = caller.account.used
        period = period_of(now_ms, catalogue.zone)
        caller = replace(caller, account=turn_page(caller.account, period, used.get(period, 0)))
        asked = make_asked(refusal=wanted) if isinstance(wanted, Refusal) else make_asked(model=wanted)
        decision = admit(asked, caller, intake, catalogue, now_ms)
        step = Step(caller, now_ms, decision, decision.caller or caller)
        yield step
        caller = step.after


@given(catalogues, callers, intakes, calls)
def test_used_never_exceeds_the_quota_and_the_balance_never_falls_below_zero(
    catalogue: Catalogue, caller: Caller, intake: Intake, sent: list[tuple[str | Refusal | None, int]]
) -> None:
    """After any sequence of calls; who had used more than the quota before uses no more of it."""
    for step in play(catalogue, caller, intake, sent):
        plan = catalogue.plan(step.after.account.plan)
        quota = 0 if plan is None else plan.monthly_credits
        assert 0 <= step.after.account.used <= max(quota, step.before.account.used)
        assert 0 <= step.after.account.balance <= step.before.account.balance


@given(catalogues, callers, intakes, calls)
def test_each_hold_moves_its_price_once_and_from_one_source(
    catalogue: Catalogue, caller: Caller, intake: Intake, sent: list[tuple[str | Refusal | None, int]]
) -> None:
    """A refusal moves no credits; a hold takes the model's price, and giving it back restores the figures."""
    for step in play(catalogue, caller, intake, sent):
        before, after, hold = step.before.account, step.after.account, step.decision.outcome
        if isinstance(hold, Refusal):
            assert (after.period, after.used, after.balance) == (before.period, before.used, before.balance)
            continue
        assert isinstance(hold, Hold)
        assert hold.credits == catalogue.models[hold.model_id].credits
        assert (after.used - before.used, before.balance - after.balance) == (
            (hold.credits, 0) if hold.source is Source.PLAN else (0, hold.credits)
        )
        given_back = give_back(after, hold)
        assert (given_back.used, given_back.balance) == (before.used, before.balance)


@given(catalogues, callers, intakes, calls)
def test_every_call_that_passes_row_7_takes_exactly_one_place_in_both_windows(
    catalogue: Catalogue, caller: Caller, intake: Intake, sent: list[tuple[str | Refusal | None, int]]
) -> None:
    """Admitted or refused from row 8 on; one that row 7 or an earlier one refuses takes none."""
    for step in play(catalogue, caller, intake, sent):
        outcome = step.decision.outcome
        if isinstance(outcome, Refusal) and outcome.error in UP_TO_ROW_7:
            assert step.decision.caller is None
            continue
        minute = step.now_ms // MINUTE_MS
        for before, after in (
            (step.before.account.window, step.after.account.window),
            (step.before.key.window, step.after.key.window),
        ):
            opened = in_minute(before, minute)
            assert (after.minute, after.taken) == (opened.minute, opened.taken + 1)


@given(catalogues, callers, intakes, calls)
def test_no_window_is_ever_fuller_than_its_limit(
    catalogue: Catalogue, caller: Caller, intake: Intake, sent: list[tuple[str | Refusal | None, int]]
) -> None:
    """Neither the account's nor the key's, and what the caller is told is between 0 and the limit."""
    for step in play(catalogue, caller, intake, sent):
        limit, key = step.decision.rate_limit, step.after.key
        assert step.after.account.window.taken <= catalogue.offer(step.after.account.plan).requests_per_minute
        assert key.limit_per_minute is None or key.window.taken <= key.limit_per_minute
        assert limit is None or 0 <= limit.remaining <= limit.limit_per_minute
