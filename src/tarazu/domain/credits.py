"""Move credits between quota, balance and holds. Every credit that moves, moves here. Pure.

A request costs a fixed price from one source: the plan's quota when it covers all of it, else the balance.
"""

from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from tarazu.domain.accounts import Account
from tarazu.domain.catalogue import ANY_MODEL, Catalogue, Plan

BALANCE_MAX = 10**15
"""The most that a top-up or an adjustment may bring a balance to: far below what 64 bits hold.

Credits that a hold gives back may pass it: they were in the balance before.
"""


class Source(StrEnum):
    """Where the cost of a request is taken from; the values of `usage.billing_source`."""

    PLAN = "plan"
    BALANCE = "api_balance"


class RequestState(StrEnum):
    """A request is held, and then ends exactly once."""

    HELD = "held"
    CHARGED = "charged"
    RELEASED = "released"
    SWEPT = "swept"


class Reason(StrEnum):
    """Why a request has got no reply although its backend was asked, where that was the caller's doing."""

    ABANDONED = "abandoned"
    """Its client left before the reply."""
    TIMED_OUT = "timed_out"
    """The model's time-out passed."""


class Hold(Struct, frozen=True, kw_only=True):
    """Credits set aside for one request, until it is charged, released, or swept after `deadline_ms`.

    `period` and `day` are those of the admission, by which the request is booked whenever it ends. The idempotency
    key is the one that the request was sent with; a hold that is read from the books does not tell it.
    """

    request_id: str
    account_id: str
    key_id: str
    model_id: str
    credits: int
    source: Source
    period: str
    day: str
    created_at_ms: int
    deadline_ms: int
    idempotency_key: str | None = None


LOW_PART = 5
"""Where one in so many is left, four of five are used: 80 %."""


class Means(StrEnum):
    """Whether an account can pay for requests."""

    ENOUGH = "enough"
    LOW = "low"
    """Of quota and balance together a fifth of the quota is left, or less."""
    FREE_ONLY = "free_only"
    """Nothing is left that pays for a model with a price."""
    NONE = "none"
    """Nothing is left that pays for any of its models."""
    NO_OFFER = "no_offer"
    """It has neither a plan nor a balance."""


def turn_page(account: Account, period: str, used: int) -> Account:
    """Turn to the account's page of `period`, on which `used` is spent: what its requests of that period cost.

    A new month's page is empty, for unused quota does not carry over. Wherever the clock goes, and whichever zone is
    set, no month's quota is given a second time.
    """
    return replace(account, period=period, used=used)


def quota_limit(plan: Plan | None) -> int:
    """Tell the monthly quota; without a plan it is 0."""
    return 0 if plan is None else plan.monthly_credits


def quota_remaining(account: Account, plan: Plan | None) -> int:
    """Count the credits left of the monthly quota; never negative, also after a change to a smaller plan."""
    return max(0, quota_limit(plan) - account.used)


def source_for(account: Account, plan: Plan | None, cost: int) -> Source | None:
    """Choose the one source that covers the whole cost, the plan before the balance; None when neither does."""
    if plan is not None and quota_remaining(account, plan) >= cost:
        return Source.PLAN
    return Source.BALANCE if account.balance >= cost else None


def means_of(account: Account, catalogue: Catalogue) -> Means:
    """Judge whether what is left of quota and balance pays for the models that the account may use.

    The account is on the page of the present period.
    """
    plan = catalogue.plan(account.plan)
    prices = [model.credits for model in catalogue.usable_models(catalogue.offer(account.plan), (ANY_MODEL,))]
    priced = [price for price in prices if price]
    if plan is None and account.balance <= 0:
        return Means.NO_OFFER
    if priced and source_for(account, plan, min(priced)) is None:
        return Means.FREE_ONLY if 0 in prices else Means.NONE
    left = quota_remaining(account, plan) + account.balance
    return Means.LOW if priced and is_low(left, quota_limit(plan)) else Means.ENOUGH


def is_low(left: int, whole: int) -> bool:
    """Tell whether four fifths are used, or more; of nothing, nothing is."""
    return whole > 0 and left * LOW_PART <= whole


def take(account: Account, cost: int, source: Source) -> Account:
    """Take the cost out of quota or balance. The caller has asked `source_for` on the same account."""
    if source is Source.PLAN:
        return replace(account, used=account.used + cost)
    return replace(account, balance=account.balance - cost)


def forgiven(account: Account, hour: int, free_per_hour: int) -> Account | None:
    """Take one of the requests without a reply that are free in this hour; None: there is none left.

    A clock that is an hour behind gives none a second time. What is counted in a later hour still is given up: a clock
    that was wrong has begun it.
    """
    if not hour <= account.abandoned_hour <= hour + 1:
        account = replace(account, abandoned_hour=hour, abandoned_taken=0)
    taken = account.abandoned_taken
    if taken >= free_per_hour:
        return None
    return replace(account, abandoned_taken=taken + 1)


def give_back(account: Account, hold: Hold) -> Account:
    """Return what a hold took. The quota of a month that has passed is past: the new one is not touched."""
    if hold.source is Source.BALANCE:
        return replace(account, balance=account.balance + hold.credits)
    return replace(account, used=account.used - hold.credits) if hold.period == account.period else account
