"""Fixed windows of one clock minute, for the account and for the key: both are taken, or neither. Pure."""

from enum import StrEnum

from msgspec import Struct

from tarazu.domain.accounts import Account, Key, Window
from tarazu.domain.calendar import minute_end_ms, minute_of
from tarazu.domain.catalogue import Offer

AHEAD_MINUTES_MAX = 5
"""More than clocks that are kept right ever differ by."""


class Scope(StrEnum):
    """Whose limit it is."""

    ACCOUNT = "account"
    KEY = "key"


class RateLimit(Struct, frozen=True, kw_only=True):
    """The limit that binds tightest now. `remaining` places are left until `resets_at_ms`; never negative."""

    scope: Scope
    limit_per_minute: int
    remaining: int
    resets_at_ms: int


def in_minute(window: Window, minute: int) -> Window:
    """Turn the window to `minute`. A clock that steps back by AHEAD_MINUTES_MAX or less gives no place twice.

    A window still further ahead is turned back: a clock that was wrong has opened it, and it would keep the callers out
    until that time has come.
    """
    is_open = minute <= window.minute <= minute + AHEAD_MINUTES_MAX
    return window if is_open else Window(minute, 0)


def take_place(window: Window) -> Window:
    """Use one place."""
    return Window(window.minute, window.taken + 1)


def binding_limit(account: Account, key: Key, offer: Offer, now_ms: int) -> RateLimit:
    """Tell which of the account's and the key's limits leaves less room now; the account's on a tie."""
    limits = [account_limit(account, offer, now_ms)]
    if key.limit_per_minute is not None:
        limits.append(_limit(Scope.KEY, key.window, key.limit_per_minute, now_ms))
    return min(limits, key=lambda limit: limit.remaining)


def account_limit(account: Account, offer: Offer, now_ms: int) -> RateLimit:
    """Tell how much room the account's own limit leaves now, over all its keys."""
    return _limit(Scope.ACCOUNT, account.window, offer.requests_per_minute, now_ms)


def _limit(scope: Scope, last: Window, limit_per_minute: int, now_ms: int) -> RateLimit:
    window = in_minute(last, minute_of(now_ms))
    return RateLimit(
        scope=scope,
        limit_per_minute=limit_per_minute,
        remaining=max(0, limit_per_minute - window.taken),
        resets_at_ms=minute_end_ms(window.minute),
    )
