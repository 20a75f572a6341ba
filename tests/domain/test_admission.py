"""Admission: rows 4 to 7 and 14 to 16 of the order of checks, each alone, and what an admission moves."""

import pytest
from msgspec.structs import replace

from tarazu.domain.accounts import Account, AccountStatus, Intake, Key, Window
from tarazu.domain.admission import PAUSED, SETTLING_S, Asked, Caller, Decision, admit, identify
from tarazu.domain.catalogue import Catalogue, Offer
from tarazu.domain.credits import Source, turn_page
from tarazu.domain.errors import Error, ExhaustedDetails, NoDetails, RateLimitDetails, Refusal, Sender
from tests.support.values import (
    DAY,
    MINUTE_MS,
    NOON_MS,
    PERIOD,
    held,
    instant_ms,
    make_account,
    make_asked,
    make_catalogue,
    make_key,
    make_model,
    make_plan,
    present,
    refused,
)

MINUTE = NOON_MS // MINUTE_MS
SENDER = Sender(make_account().id, make_key().id)
UNKNOWN = Refusal(error=Error.MODEL_NOT_FOUND, sender=SENDER)


def decide(
    *,
    account: Account | None = None,
    key: Key | None = None,
    asked: Asked | None = None,
    catalogue: Catalogue | None = None,
    intake: Intake = Intake(),  # noqa: B008 - it is frozen
    now_ms: int = NOON_MS,
) -> Decision:
    """Ask for one model with a good key of a good account, but for what the test names."""
    return admit(
        asked or make_asked(),
        Caller(key or make_key(), account or make_account()),
        intake,
        catalogue or make_catalogue(),
        now_ms,
    )


def places(decision: Decision) -> tuple[Window, Window] | None:
    """Tell the account's and the key's window as they are to be stored."""
    return None if decision.caller is None else (decision.caller.account.window, decision.caller.key.window)


# Row 4: the key is known, not revoked, not expired.


def test_an_unknown_key_is_invalid() -> None:
    """Row 4; nothing is stored."""
    decision = admit(make_asked(), None, Intake(), make_catalogue(), NOON_MS)
    assert decision == Decision(outcome=Refusal(error=Error.INVALID_API_KEY))


def test_a_known_id_with_another_secret_is_invalid() -> None:
    """Row 4: the id of a key is no secret."""
    forged = replace(present(2), id=present(1).id)
    assert refused(decide(asked=make_asked(forged))).error is Error.INVALID_API_KEY


def test_a_revoked_key_is_invalid() -> None:
    """Row 4, from the instant of the revocation on, whatever the clock of this process says."""
    for revoked_at_ms in (NOON_MS - 1, NOON_MS, NOON_MS + 1):
        key = make_key(revoked_at_ms=revoked_at_ms)
        assert refused(decide(key=key)).error is Error.INVALID_API_KEY


def test_a_key_is_good_until_the_instant_of_its_expiry() -> None:
    """Row 4: the last millisecond before it is served, the instant itself is not."""
    key = make_key(expires_at_ms=NOON_MS)
    held(decide(key=key, now_ms=NOON_MS - 1))
    assert refused(decide(key=key, now_ms=NOON_MS)).error is Error.INVALID_API_KEY


def test_a_paused_key_is_invalid_and_told_so_to_who_has_it() -> None:
    """Row 4; whoever knows its id alone learns nothing."""
    paused = make_key(paused_at_ms=NOON_MS - 1)
    refusal = refused(decide(key=paused))
    assert (refusal.error, refusal.message) == (Error.INVALID_API_KEY, PAUSED)
    forged = replace(present(2), id=present(1).id)
    assert refused(decide(key=paused, asked=make_asked(forged))).message is None
    assert refused(decide(key=make_key(paused_at_ms=NOON_MS - 1, expires_at_ms=NOON_MS))).message is None


# Row 5: the account is active.


@pytest.mark.parametrize("status", [AccountStatus.UNVERIFIED, AccountStatus.INACTIVE, AccountStatus.BLOCKED])
def test_an_account_that_is_not_active_is_unavailable(status: AccountStatus) -> None:
    """Row 5; nothing is stored."""
    decision = decide(account=make_account(status=status))
    assert decision == Decision(outcome=Refusal(error=Error.ACCOUNT_UNAVAILABLE, sender=SENDER))


def test_identify_answers_with_the_caller_or_rows_4_and_5() -> None:
    """What the GET endpoints ask: no window, no intake, no credits."""
    caller = Caller(make_key(), make_account(plan=None, window=Window(MINUTE, 10_000)))
    assert identify(present(), caller, NOON_MS) is caller
    assert identify(present(2), caller, NOON_MS) == Refusal(error=Error.INVALID_API_KEY, sender=SENDER)
    assert identify(present(), None, NOON_MS) == Refusal(error=Error.INVALID_API_KEY)
    blocked = Caller(make_key(), make_account(status=AccountStatus.BLOCKED))
    assert identify(present(), blocked, NOON_MS) == Refusal(error=Error.ACCOUNT_UNAVAILABLE, sender=SENDER)


# Row 6: intake is running.


def test_stopped_intake_refuses_and_takes_no_place() -> None:
    """Row 6, with the operator's Retry-After."""
    decision = decide(intake=Intake(stopped=True, retry_after_s=120))
    assert decision == Decision(outcome=Refusal(error=Error.SYSTEM_STOPPED, retry_after_s=120, sender=SENDER))


# Row 7: both windows have room.


@pytest.mark.parametrize(
    ("scope", "of_account", "of_key"), [("account", 10, 0), ("account", 10, 3), ("key", 3, 3), ("account", 11, 9)]
)
def test_a_full_window_refuses_and_takes_no_place(scope: str, of_account: int, of_key: int) -> None:
    """Row 7: with the scope's limit, when it resets, and a Retry-After until then."""
    decision = decide(
        account=make_account(window=Window(MINUTE, of_account)),
        key=make_key(window=Window(MINUTE, of_key), limit_per_minute=3),
        catalogue=make_catalogue(plans=[make_plan(requests_per_minute=10)]),
        now_ms=NOON_MS + 15_500,
    )
    limit = 10 if scope == "account" else 3
    assert refused(decision) == Refusal(
        error=Error.RATE_LIMIT_EXCEEDED,
        details=RateLimitDetails(scope=scope, limit_per_minute=limit, resets_at="2026-02-10T12:01:00Z"),
        retry_after_s=45,
        sender=SENDER,
    )
    assert decision.caller is None
    assert decision.rate_limit is not None
    assert (decision.rate_limit.limit_per_minute, decision.rate_limit.remaining) == (limit, 0)


def test_waiting_as_long_as_retry_after_says_finds_room() -> None:
    """Row 7: not a second early."""
    full, catalogue = make_account(window=Window(MINUTE, 1)), make_catalogue(plans=[make_plan(requests_per_minute=1)])
    for now_ms in (NOON_MS, NOON_MS + 1, NOON_MS + 999, NOON_MS + 59_999):
        refusal = refused(decide(account=full, catalogue=catalogue, now_ms=now_ms))
        assert refusal.retry_after_s is not None
        held(decide(account=full, catalogue=catalogue, now_ms=now_ms + refusal.retry_after_s * 1_000))


def test_an_admission_takes_one_place_in_both_windows() -> None:
    """Also in the key's when it has no limit of its own yet; the rate limit is told as it is afterwards."""
    decision = decide(
        account=make_account(window=Window(MINUTE, 4)),
        key=make_key(window=Window(MINUTE - 1, 9)),
        catalogue=make_catalogue(plans=[make_plan(requests_per_minute=10)]),
    )
    assert places(decision) == (Window(MINUTE, 5), Window(MINUTE, 1))
    assert decision.rate_limit is not None
    assert (decision.rate_limit.remaining, decision.rate_limit.resets_at_ms) == (5, NOON_MS + MINUTE_MS)


def test_an_account_without_a_plan_has_the_pay_as_you_go_limit() -> None:
    """Decisions, Models: the `payg` section's per-minute limit."""
    catalogue = make_catalogue(payg=Offer(models=("*",), requests_per_minute=2))
    account = make_account(plan=None, balance=5, window=Window(MINUTE, 1))
    held(decide(account=account, catalogue=catalogue))
    account = replace(account, window=Window(MINUTE, 2))
    assert refused(decide(account=account, catalogue=catalogue)).error is Error.RATE_LIMIT_EXCEEDED


# Rows 8 to 13: decided before, answered here in their turn.


def test_what_was_found_in_the_body_is_answered_and_takes_a_place() -> None:
    """Rows 8 to 13: handed in, handed out, and nothing but the windows moves."""
    found = Refusal(error=Error.INVALID_REQUEST, message="stream must be true or false.")
    decision = decide(asked=make_asked(refusal=found))
    assert decision.outcome is found
    assert decision.caller == Caller(make_key(window=Window(MINUTE, 1)), make_account(window=Window(MINUTE, 1)))
    assert decision.rate_limit is not None


# Row 14: a plan or a balance.


@pytest.mark.parametrize("plan", [None, "gone"])
def test_neither_plan_nor_balance_asks_for_an_upgrade(plan: str | None) -> None:
    """Row 14; a plan that is no longer on sale is none. Also for a model that costs nothing."""
    catalogue = make_catalogue(models=[make_model("free", 0), make_model("small", 1)])
    for model in ("free", "small", None, "unknown"):
        decision = decide(account=make_account(plan=plan), asked=make_asked(model=model), catalogue=catalogue)
        assert decision.outcome == Refusal(error=Error.UPGRADE_REQUIRED, sender=SENDER)
        assert places(decision) == (Window(MINUTE, 1), Window(MINUTE, 1))


# Row 15: the model exists, and plan and key allow it.


@pytest.mark.parametrize("model", ["unknown", "", "SMALL", "small ", "*"])
def test_an_unknown_model_is_not_found(model: str) -> None:
    """Row 15: ids are matched exactly."""
    assert decide(asked=make_asked(model=model)).outcome == UNKNOWN


def test_a_model_that_plan_or_key_do_not_allow_is_not_found() -> None:
    """Row 15: a caller does not learn that it exists."""
    of_plan = make_catalogue(plans=[make_plan(models=("large",))])
    assert decide(catalogue=of_plan).outcome == UNKNOWN
    assert decide(key=make_key(models=("large",))).outcome == UNKNOWN
    assert decide(key=make_key(models=()), asked=make_asked(model=None)).outcome == UNKNOWN


def test_without_a_plan_the_pay_as_you_go_models_count() -> None:
    """Row 15 by the `payg` section."""
    catalogue = make_catalogue(payg=Offer(models=("large",), requests_per_minute=10))
    account = make_account(plan=None, balance=9)
    assert decide(account=account, catalogue=catalogue).outcome == UNKNOWN
    assert held(decide(account=account, catalogue=catalogue, asked=make_asked(model=None))).model_id == "large"


# Row 16: quota or balance covers the cost.


def test_exhausted_credits_are_told_with_all_figures() -> None:
    """Row 16: neither the remaining quota nor the balance covers the whole cost, though both together would."""
    decision = decide(account=make_account(used=97, balance=4), asked=make_asked(model="large"))
    assert decision.outcome == Refusal(
        error=Error.API_CREDITS_EXHAUSTED,
        details=ExhaustedDetails(period=PERIOD, used=97, limit=100, cost=5, api_credit_balance=4),
        sender=SENDER,
    )
    assert places(decision) == (Window(MINUTE, 1), Window(MINUTE, 1))


def test_exhausted_credits_without_a_plan_have_limit_zero() -> None:
    """Decisions, Credits."""
    decision = decide(account=make_account(plan=None, balance=4), asked=make_asked(model="large"))
    assert refused(decision).details == ExhaustedDetails(period=PERIOD, used=0, limit=0, cost=5, api_credit_balance=4)


def test_exhausted_credits_are_told_for_the_new_month() -> None:
    """The first request of a month that not even the whole quota covers: the month is the new one, used is 0."""
    catalogue = make_catalogue(plans=[make_plan(monthly_credits=4)])
    account = turn_page(make_account(period="2026-01", used=4), PERIOD, 0)
    decision = decide(account=account, asked=make_asked(model="large"), catalogue=catalogue)
    assert refused(decision).details == ExhaustedDetails(period=PERIOD, used=0, limit=4, cost=5, api_credit_balance=0)


# The admission.


def test_an_admission_holds_the_credits_of_the_plan() -> None:
    """The hold says all that its end needs to know."""
    asked = make_asked(model="large")
    decision = decide(asked=asked, account=make_account(used=95, balance=50))
    hold = held(decision)
    assert (hold.request_id, hold.account_id, hold.key_id) == (asked.request_id, "acc_1", make_key().id)
    assert (hold.model_id, hold.credits, hold.source) == ("large", 5, Source.PLAN)
    assert (hold.period, hold.day, hold.created_at_ms) == (PERIOD, DAY, NOON_MS)
    assert decision.caller is not None
    assert (decision.caller.account.used, decision.caller.account.balance) == (100, 50)


def test_an_admission_beyond_the_quota_holds_the_credits_of_the_balance() -> None:
    """The whole cost from the balance; the rest of the quota stays."""
    decision = decide(account=make_account(used=96, balance=5), asked=make_asked(model="large"))
    assert held(decision).source is Source.BALANCE
    assert decision.caller is not None
    assert (decision.caller.account.used, decision.caller.account.balance) == (96, 0)


def test_the_first_request_of_a_month_finds_the_whole_quota() -> None:
    """At the first millisecond of the month in the configured zone, not before."""
    account = make_account(period="2026-02", used=100)
    edge_ms = instant_ms("2026-03-01T00:00:00")
    assert refused(decide(account=account, now_ms=edge_ms - 1)).error is Error.API_CREDITS_EXHAUSTED
    decision = decide(account=turn_page(account, "2026-03", 0), now_ms=edge_ms)
    assert held(decision).period == "2026-03"
    assert decision.caller is not None
    assert (decision.caller.account.period, decision.caller.account.used) == ("2026-03", 1)


def test_an_account_on_the_page_of_another_month_is_a_fault_of_ours() -> None:
    """Nothing is booked to a month that it is not: the ledger turns the page first."""
    with pytest.raises(AssertionError, match="another period's page"):
        decide(account=make_account(period="2026-03"), now_ms=instant_ms("2026-02-28T23:59:59"))


def test_a_free_model_needs_no_remaining_quota() -> None:
    """Decisions, Credits: 0 credits need a plan or a balance, and move nothing."""
    catalogue = make_catalogue(models=[make_model("free", 0)])
    exhausted = decide(account=make_account(used=100), asked=make_asked(model="free"), catalogue=catalogue)
    assert (held(exhausted).credits, held(exhausted).source) == (0, Source.PLAN)
    payg = decide(account=make_account(plan=None, balance=1), asked=make_asked(model="free"), catalogue=catalogue)
    assert (held(payg).credits, held(payg).source) == (0, Source.BALANCE)
    assert payg.caller is not None
    assert payg.caller.account.balance == 1


@pytest.mark.parametrize("timeout_s", [0.0005, 1, 60, 600.5])
def test_the_deadline_leaves_the_model_its_time_and_the_charge_its_own(timeout_s: float) -> None:
    """In whole milliseconds, never less than the time-out and the time to settle."""
    catalogue = make_catalogue(models=[make_model(timeout_s=timeout_s)])
    hold = held(decide(catalogue=catalogue))
    assert 0 <= hold.deadline_ms - NOON_MS - (timeout_s + SETTLING_S) * 1_000 < 1


def test_the_price_is_that_of_the_catalogue_at_admission() -> None:
    """A price change touches no request admitted before it: the price is in the hold."""
    cheap, dear = make_catalogue(models=[make_model(credits_=1)]), make_catalogue(models=[make_model(credits_=9)])
    assert (held(decide(catalogue=cheap)).credits, held(decide(catalogue=dear)).credits) == (1, 9)


def test_a_refusal_without_details_has_the_empty_object() -> None:
    """Rows 4 to 6, 14 and 15."""
    for decision in (
        decide(key=make_key(revoked_at_ms=0)),
        decide(account=make_account(status=AccountStatus.BLOCKED)),
        decide(intake=Intake(stopped=True)),
        decide(account=make_account(plan=None)),
        decide(asked=make_asked(model="unknown")),
    ):
        assert refused(decision).details == NoDetails()
