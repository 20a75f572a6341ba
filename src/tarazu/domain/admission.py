"""Decide whether one request may go ahead: the specification's checks, in the order of decisions.md. Pure.

The numbers in the code are the rows of "Order of checks on POST /chat/completions". Rows 1 to 3 are the API's,
8 to 13 the body's: their outcome is handed in with what is asked. Row 17 is the backend's.
"""

import math

from msgspec import Struct
from msgspec.structs import replace

from tarazu.domain.accounts import Account, AccountStatus, Intake, Key, KeyState
from tarazu.domain.calendar import MILLISECONDS_PER_SECOND, day_of, iso_time, minute_of, period_of, seconds_until
from tarazu.domain.catalogue import Catalogue, Model, Plan
from tarazu.domain.credits import Hold, quota_limit, source_for, take
from tarazu.domain.errors import Error, ExhaustedDetails, RateLimitDetails, Refusal, Sender
from tarazu.domain.idempotency import RUNNING_RETRY_AFTER_S, Earlier, Idempotency, Replay, answer_from
from tarazu.domain.keys import PresentedKey
from tarazu.domain.prompt import ChatRequest
from tarazu.domain.rate_limit import RateLimit, binding_limit, in_minute, take_place

PAUSED = "This API key is paused. Whoever holds the account can resume it in the panel."
SETTLING_S = 30
"""How long after the model's time-out a hold still waits for its charge or release before it may be swept."""


class Asked(Struct, frozen=True, kw_only=True):
    """One call: the key as presented, and the request, or what rows 8 to 13 have against it."""

    request_id: str
    key: PresentedKey
    request: ChatRequest | Refusal
    idempotency: Idempotency | None = None


class Caller(Struct, frozen=True):
    """A key and its account, as read from the books under lock, on its page of this period."""

    key: Key
    account: Account


class Decision(Struct, frozen=True, kw_only=True):
    """What came of it. `caller` must be stored whatever the outcome: a refused request has used its place too.

    `caller` is None when nothing changed. `rate_limit` is None when the request did not reach row 7.
    """

    outcome: Hold | Replay | Refusal
    caller: Caller | None = None
    rate_limit: RateLimit | None = None


def identify(presented: PresentedKey, caller: Caller | None, now_ms: int) -> Caller | Refusal:
    """Answer rows 4 and 5: who is calling, if the key is good and the account may use the service."""
    if caller is None:
        return Refusal(error=Error.INVALID_API_KEY)  # 4
    if not presented.matches(caller.key.digest) or not caller.key.is_active(now_ms):
        is_paused = presented.matches(caller.key.digest) and caller.key.state(now_ms) is KeyState.PAUSED
        return Refusal(error=Error.INVALID_API_KEY, message=PAUSED if is_paused else None, sender=_sender(caller))  # 4
    if caller.account.status is not AccountStatus.ACTIVE:
        return Refusal(error=Error.ACCOUNT_UNAVAILABLE, sender=_sender(caller))  # 5
    return caller


def usable_models(caller: Caller, catalogue: Catalogue) -> tuple[Model, ...]:
    """List the models that the caller can call, in catalogue order; none without a plan and a balance."""
    account = caller.account
    if catalogue.plan(account.plan) is None and account.balance <= 0:
        return ()
    return tuple(catalogue.usable_models(catalogue.offer(account.plan), caller.key.models))


def admit(
    asked: Asked,
    caller: Caller | None,
    intake: Intake,
    catalogue: Catalogue,
    now_ms: int,
    earlier: Earlier | None = None,
) -> Decision:
    """Answer with a hold on the credits, with an earlier reply, or with the first refusal that applies.

    `caller` holds the rows as locked by the ledger; the ones that come back must be stored with either answer.
    `earlier` is the request that the account has sent with the same idempotency key.
    """
    identified = identify(asked.key, caller, now_ms)
    if isinstance(identified, Refusal):
        return Decision(outcome=identified)
    if intake.stopped:
        retry_after_s, sender = intake.retry_after_s, _sender(identified)
        return Decision(outcome=Refusal(error=Error.SYSTEM_STOPPED, retry_after_s=retry_after_s, sender=sender))  # 6

    offer = catalogue.offer(identified.account.plan)
    limit = binding_limit(identified.account, identified.key, offer, now_ms)
    if limit.remaining == 0:
        return Decision(outcome=_too_many(limit, _sender(identified), now_ms), rate_limit=limit)  # 7
    caller = _place_taken(identified, now_ms)
    limit = binding_limit(caller.account, caller.key, offer, now_ms)

    if isinstance(asked.request, Refusal):
        return Decision(outcome=asked.request, caller=caller, rate_limit=limit)  # 8 to 13
    if asked.idempotency is not None and earlier is not None:
        # Before row 14: what has been paid for stays the caller's, also when credits have run out since.
        answer = answer_from(earlier, asked.idempotency, _retry_after_s(earlier, now_ms))
        return Decision(outcome=answer, caller=caller, rate_limit=limit)
    hold = _hold(asked, caller, catalogue, now_ms)
    if isinstance(hold, Hold):
        caller = Caller(caller.key, take(caller.account, hold.credits, hold.source))
    return Decision(outcome=hold, caller=caller, rate_limit=limit)


def _hold(asked: Asked, caller: Caller, catalogue: Catalogue, now_ms: int) -> Hold | Refusal:
    assert isinstance(asked.request, ChatRequest)
    account = caller.account
    assert account.period == period_of(now_ms, catalogue.zone), "the account is on another period's page"
    plan = catalogue.plan(account.plan)
    if plan is None and account.balance <= 0:
        message = _unpaid(Error.UPGRADE_REQUIRED, catalogue)
        return Refusal(error=Error.UPGRADE_REQUIRED, message=message, sender=_sender(caller))  # 14
    model = catalogue.usable_model(asked.request.model, catalogue.offer(account.plan), caller.key.models)
    if model is None:
        return Refusal(error=Error.MODEL_NOT_FOUND, sender=_sender(caller))  # 15
    source = source_for(account, plan, model.credits)
    if source is None:
        return _exhausted(caller, plan, model, _unpaid(Error.API_CREDITS_EXHAUSTED, catalogue))  # 16
    return Hold(
        request_id=asked.request_id,
        account_id=account.id,
        key_id=caller.key.id,
        model_id=model.id,
        credits=model.credits,
        source=source,
        period=account.period,
        day=day_of(now_ms, catalogue.zone),
        created_at_ms=now_ms,
        deadline_ms=now_ms + math.ceil((model.timeout_s + SETTLING_S) * 1_000),
        idempotency_key=None if asked.idempotency is None else asked.idempotency.key,
    )


def _place_taken(caller: Caller, now_ms: int) -> Caller:
    minute = minute_of(now_ms)
    key, account = caller.key, caller.account
    return Caller(
        replace(key, window=take_place(in_minute(key.window, minute))),
        replace(account, window=take_place(in_minute(account.window, minute))),
    )


def _too_many(limit: RateLimit, sender: Sender, now_ms: int) -> Refusal:
    return Refusal(
        error=Error.RATE_LIMIT_EXCEEDED,
        details=RateLimitDetails(
            scope=limit.scope,
            limit_per_minute=limit.limit_per_minute,
            resets_at=iso_time(limit.resets_at_ms),
        ),
        retry_after_s=seconds_until(limit.resets_at_ms, now_ms),
        sender=sender,
    )


def _retry_after_s(earlier: Earlier, now_ms: int) -> int:
    """Tell when to ask again for a reply that is not there: soon, while the model may still give it.

    After the model's time-out nobody waits for it any more: the process has died, and what is left is until the sweep.
    """
    if earlier.deadline_ms is None or now_ms < earlier.deadline_ms - SETTLING_S * MILLISECONDS_PER_SECOND:
        return RUNNING_RETRY_AFTER_S
    return seconds_until(earlier.deadline_ms, now_ms)


def _sender(caller: Caller) -> Sender:
    return Sender(caller.account.id, caller.key.id)


def _unpaid(error: Error, catalogue: Catalogue) -> str | None:
    """Name the page on which this shop's customers pay, after the table's own text; None: it has none."""
    payment_url = catalogue.shop.payment_url
    return None if payment_url is None else f"{error.value.message} Pay here: {payment_url}"


def _exhausted(caller: Caller, plan: Plan | None, model: Model, message: str | None) -> Refusal:
    account = caller.account
    return Refusal(
        error=Error.API_CREDITS_EXHAUSTED,
        message=message,
        details=ExhaustedDetails(
            period=account.period,
            used=account.used,
            limit=quota_limit(plan),
            cost=model.credits,
            api_credit_balance=account.balance,
        ),
        sender=_sender(caller),
    )
