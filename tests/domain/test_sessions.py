"""How long a person stays signed in."""

import pytest

from tarazu.domain.people import PersonKind
from tarazu.domain.sessions import SEEN_EVERY_MS, begin_session, seen_again
from tests.support.values import DAY_MS, MINUTE_MS, NOON_MS

SPANS = {PersonKind.HOLDER: (7 * DAY_MS, 30 * DAY_MS), PersonKind.OPERATOR: (60 * MINUTE_MS, 12 * 60 * MINUTE_MS)}
"""What was decided: how long a session lasts unused, and at most."""

of_both = pytest.mark.parametrize("kind", PersonKind)


@of_both
def test_a_new_session_lasts_for_its_idle_time(kind: PersonKind) -> None:
    """A holder's 7 days, an operator's an hour."""
    session = begin_session(b"d", kind, "id", NOON_MS)
    assert session.expires_at_ms == NOON_MS + SPANS[kind][0]
    assert session.is_live(session.expires_at_ms - 1)
    assert not session.is_live(session.expires_at_ms)


@of_both
def test_use_makes_it_last_up_to_its_whole_time(kind: PersonKind) -> None:
    """From each use on for the idle time, but never beyond 30 days or 12 hours."""
    idle_ms, whole_ms = SPANS[kind]
    session = begin_session(b"d", kind, "id", NOON_MS)
    used = seen_again(session, NOON_MS + idle_ms - 1)
    assert (used.seen_at_ms, used.expires_at_ms) == (NOON_MS + idle_ms - 1, NOON_MS + 2 * idle_ms - 1)
    late = seen_again(session, NOON_MS + whole_ms - 1)
    assert (late.created_at_ms, late.expires_at_ms) == (NOON_MS, NOON_MS + whole_ms)


@of_both
def test_it_is_written_again_once_a_minute(kind: PersonKind) -> None:
    """Also by a clock that was set back, which would keep it from being written for long."""
    session = begin_session(b"d", kind, "id", NOON_MS)
    assert seen_again(session, NOON_MS + SEEN_EVERY_MS - 1) is session
    assert seen_again(session, NOON_MS + SEEN_EVERY_MS).seen_at_ms == NOON_MS + SEEN_EVERY_MS
    assert seen_again(session, NOON_MS - SEEN_EVERY_MS).seen_at_ms == NOON_MS - SEEN_EVERY_MS
