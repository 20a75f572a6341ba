"""Minute windows: exact, never negative, and never given twice."""

from hypothesis import given
from hypothesis import strategies as st

from tarazu.domain.accounts import Window
from tarazu.domain.rate_limit import AHEAD_MINUTES_MAX, Scope, account_limit, binding_limit, in_minute, take_place
from tests.support.values import MINUTE_MS, NOON_MS, make_account, make_key, make_plan

MINUTE = NOON_MS // MINUTE_MS

windows = st.builds(Window, st.integers(MINUTE - 3, MINUTE + 3), st.integers(0, 10))
limits = st.integers(1, 10)


def test_a_new_minute_starts_with_all_places() -> None:
    """Nothing is carried over."""
    assert in_minute(Window(MINUTE - 1, 7), MINUTE) == Window(MINUTE, 0)


def test_the_same_minute_keeps_its_count() -> None:
    """Turning to the minute that it is changes nothing."""
    assert in_minute(Window(MINUTE, 7), MINUTE) == Window(MINUTE, 7)


def test_a_clock_that_steps_back_gives_no_place_twice() -> None:
    """The window of the later minute goes on counting until the clock has caught up."""
    window = take_place(in_minute(Window(MINUTE, 7), MINUTE - 1))
    assert window == Window(MINUTE, 8)
    assert in_minute(window, MINUTE) == Window(MINUTE, 8)
    assert in_minute(window, MINUTE + 1) == Window(MINUTE + 1, 0)


def test_a_window_five_minutes_ahead_stays_and_one_further_ahead_is_turned_back() -> None:
    """A clock that was an hour ahead for a moment keeps nobody out for an hour."""
    assert in_minute(Window(MINUTE + AHEAD_MINUTES_MAX, 7), MINUTE) == Window(MINUTE + AHEAD_MINUTES_MAX, 7)
    assert in_minute(Window(MINUTE + AHEAD_MINUTES_MAX + 1, 7), MINUTE) == Window(MINUTE, 0)


def test_limit_one_has_one_place_and_then_none() -> None:
    """No off-by-one at the smallest limit."""
    plan, key = make_plan(requests_per_minute=1), make_key()
    fresh = binding_limit(make_account(), key, plan, NOON_MS)
    used = binding_limit(make_account(window=Window(MINUTE, 1)), key, plan, NOON_MS)
    assert (fresh.remaining, used.remaining) == (1, 0)


def test_the_last_place_of_a_limit_is_one() -> None:
    """At 9 of 10 there is one left."""
    account = make_account(window=Window(MINUTE, 9))
    assert binding_limit(account, make_key(), make_plan(requests_per_minute=10), NOON_MS).remaining == 1


def test_remaining_is_not_negative_after_a_limit_was_lowered() -> None:
    """A plan that is cut down within the minute shows 0, not -2."""
    account = make_account(window=Window(MINUTE, 5))
    assert binding_limit(account, make_key(), make_plan(requests_per_minute=3), NOON_MS).remaining == 0


def test_the_tighter_limit_binds() -> None:
    """The account's or the key's, whichever leaves less room now, not whichever is smaller."""
    plan = make_plan(requests_per_minute=10)
    key = make_key(limit_per_minute=5)
    by_key = binding_limit(make_account(), key, plan, NOON_MS)
    by_account = binding_limit(make_account(window=Window(MINUTE, 7)), key, plan, NOON_MS)
    assert (by_key.scope, by_key.limit_per_minute, by_key.remaining) == (Scope.KEY, 5, 5)
    assert (by_account.scope, by_account.limit_per_minute, by_account.remaining) == (Scope.ACCOUNT, 10, 3)


def test_on_a_tie_the_account_is_named() -> None:
    """Another key would not help."""
    limit = binding_limit(make_account(), make_key(limit_per_minute=10), make_plan(requests_per_minute=10), NOON_MS)
    assert limit.scope is Scope.ACCOUNT


def test_a_key_without_a_limit_of_its_own_is_bound_by_the_account_alone() -> None:
    """Whatever the key's window has counted."""
    key = make_key(window=Window(MINUTE, 500))
    assert binding_limit(make_account(), key, make_plan(requests_per_minute=10), NOON_MS).remaining == 10


def test_the_limit_of_an_account_is_over_all_its_keys() -> None:
    """What its own page shows: in this minute, and whole again in the next."""
    account, plan = make_account(window=Window(MINUTE, 7)), make_plan(requests_per_minute=10)
    now, later = (account_limit(account, plan, NOON_MS + later_ms) for later_ms in (0, MINUTE_MS))
    assert (now.scope, now.limit_per_minute, now.remaining, later.remaining) == (Scope.ACCOUNT, 10, 3, 10)


def test_the_window_resets_at_the_end_of_the_clock_minute() -> None:
    """Not a minute after the first request."""
    limit = binding_limit(make_account(), make_key(), make_plan(), NOON_MS + 12_345)
    assert limit.resets_at_ms == NOON_MS + MINUTE_MS


def test_after_a_step_back_the_reset_is_that_of_the_window() -> None:
    """Who is told to wait until then finds room."""
    account = make_account(window=Window(MINUTE + 2, 1))
    limit = binding_limit(account, make_key(), make_plan(requests_per_minute=1), NOON_MS)
    assert (limit.remaining, limit.resets_at_ms) == (0, NOON_MS + 3 * MINUTE_MS)


@given(windows, windows, limits, st.none() | limits, st.integers(-200_000, 200_000))
def test_remaining_stays_between_zero_and_the_limit(
    of_account: Window, of_key: Window, per_minute: int, key_limit: int | None, step_ms: int
) -> None:
    """Whatever the windows hold and wherever the clock goes, and the reset is never in the past."""
    now_ms = NOON_MS + step_ms
    limit = binding_limit(
        make_account(window=of_account),
        make_key(window=of_key, limit_per_minute=key_limit),
        make_plan(requests_per_minute=per_minute),
        now_ms,
    )
    assert 0 <= limit.remaining <= limit.limit_per_minute
    assert limit.resets_at_ms > now_ms


@given(limits, st.lists(st.integers(-90_000, 90_000), min_size=1, max_size=60))
def test_no_minute_has_more_places_than_its_limit(per_minute: int, steps_ms: list[int]) -> None:
    """Wherever the clock goes, also back by up to five minutes, what a window lets in is at most its limit."""
    plan, account, now_ms, latest_ms = make_plan(requests_per_minute=per_minute), make_account(), NOON_MS, NOON_MS
    let_in: dict[int, int] = {}
    for step_ms in steps_ms:
        now_ms = max(now_ms + step_ms, latest_ms - AHEAD_MINUTES_MAX * MINUTE_MS)
        latest_ms = max(now_ms, latest_ms)
        if binding_limit(account, make_key(), plan, now_ms).remaining > 0:
            account = make_account(window=take_place(in_minute(account.window, now_ms // MINUTE_MS)))
            let_in[account.window.minute] = let_in.get(account.window.minute, 0) + 1
    assert all(taken <= per_minute for taken in let_in.values())
