"""Who buys: the state of a key."""

import pytest

from tarazu.domain.accounts import KeyState
from tests.support.values import NOON_MS, make_key


@pytest.mark.parametrize(
    ("expires_at_ms", "revoked_at_ms", "paused_at_ms", "state"),
    [
        (None, None, None, KeyState.ACTIVE),
        (NOON_MS + 1, None, None, KeyState.ACTIVE),
        (NOON_MS, None, None, KeyState.EXPIRED),
        (None, NOON_MS, None, KeyState.REVOKED),
        (NOON_MS, NOON_MS, None, KeyState.REVOKED),
        (None, None, NOON_MS, KeyState.PAUSED),
        (NOON_MS + 1, None, NOON_MS + 1, KeyState.PAUSED),
        (NOON_MS, None, NOON_MS, KeyState.EXPIRED),
        (None, NOON_MS, NOON_MS, KeyState.REVOKED),
    ],
)
def test_a_key_is_active_until_it_is_over(
    expires_at_ms: int | None, revoked_at_ms: int | None, paused_at_ms: int | None, state: KeyState
) -> None:
    """What was revoked stays so, also when its time would be over; only an active key opens anything."""
    key = make_key(expires_at_ms=expires_at_ms, revoked_at_ms=revoked_at_ms, paused_at_ms=paused_at_ms)
    assert key.has_ended(NOON_MS) is (state in {KeyState.EXPIRED, KeyState.REVOKED})
    assert key.state(NOON_MS) is state
    assert key.is_active(NOON_MS) is (state is KeyState.ACTIVE)
