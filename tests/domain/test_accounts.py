"""Who buys: the state of a key."""

import pytest

from tarazu.domain.accounts import KeyState
from tests.support.values import NOON_MS, make_key


@pytest.mark.parametrize(
    ("expires_at_ms", "revoked_at_ms", "state"),
    [
        (None, None, KeyState.ACTIVE),
        (NOON_MS + 1, None, KeyState.ACTIVE),
        (NOON_MS, None, KeyState.EXPIRED),
        (None, NOON_MS, KeyState.REVOKED),
        (NOON_MS, NOON_MS, KeyState.REVOKED),
    ],
)
def test_a_key_is_active_until_it_is_over(
    expires_at_ms: int | None, revoked_at_ms: int | None, state: KeyState
) -> None:
    """What was revoked stays so, also when its time would be over; only an active key opens anything."""
    key = make_key(expires_at_ms=expires_at_ms, revoked_at_ms=revoked_at_ms)
    assert key.state(NOON_MS) is state
    assert key.is_active(NOON_MS) is (state is KeyState.ACTIVE)
