"""GET /usage: quota, balance, the window that binds tighter, and the calling key. Reading it changes nothing."""

from starlette.requests import Request
from starlette.responses import Response

from tarazu.api.envelope import json_response
from tarazu.api.identity import identified
from tarazu.api.objects import ApiCredits, CallingKey, PayAsYouGo, RateLimitState, UsageObject
from tarazu.domain.admission import Caller
from tarazu.domain.calendar import Clock, iso_time
from tarazu.domain.catalogue import NO_PLAN, Catalogue
from tarazu.domain.credits import quota_limit, quota_remaining
from tarazu.domain.rate_limit import binding_limit
from tarazu.store.ledger import Ledger


class UsageEndpoint:
    """The endpoint that shows an account's state."""

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        self._ledger = ledger
        self._clock = clock

    async def show(self, request: Request) -> Response:
        """Show the state as it is now."""
        caller = await identified(request, self._ledger)
        return json_response(_usage(caller, self._ledger.catalogue, self._clock()))


def _usage(caller: Caller, catalogue: Catalogue, now_ms: int) -> UsageObject:
    account = caller.account
    plan = catalogue.plan(account.plan)
    limit = binding_limit(account, caller.key, catalogue.offer(account.plan), now_ms)
    return UsageObject(
        plan=NO_PLAN if plan is None else plan.name,
        period=account.period,
        api_credits=ApiCredits(
            used=account.used,
            limit=quota_limit(plan),
            remaining=quota_remaining(account, plan),
        ),
        pay_as_you_go=PayAsYouGo(balance=account.balance),
        rate_limit=RateLimitState(
            limit_per_minute=limit.limit_per_minute,
            remaining=limit.remaining,
            resets_at=iso_time(limit.resets_at_ms),
        ),
        key=CallingKey(id=caller.key.id, name=caller.key.name),
    )
