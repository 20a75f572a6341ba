"""How long a person stays signed in: while the browser is used, and not for ever. Pure."""

from msgspec import Struct
from msgspec.structs import replace

from tarazu.domain.calendar import MILLISECONDS_PER_DAY, MILLISECONDS_PER_MINUTE
from tarazu.domain.people import PersonKind

SEEN_EVERY_MS = MILLISECONDS_PER_MINUTE
"""A session in use is written anew once in so long, not at every request; it may end so much earlier for it."""


CONFIRMED_MS = 15 * MILLISECONDS_PER_MINUTE
"""For so long after the password was given what matters most is done without asking for it again."""


class Lifetime(Struct, frozen=True):
    """A session ends when it has not been used for `idle_ms`, and after `whole_ms` in any case."""

    idle_ms: int
    whole_ms: int


LIFETIMES = {
    PersonKind.HOLDER: Lifetime(idle_ms=7 * MILLISECONDS_PER_DAY, whole_ms=30 * MILLISECONDS_PER_DAY),
    PersonKind.OPERATOR: Lifetime(idle_ms=60 * MILLISECONDS_PER_MINUTE, whole_ms=12 * 60 * MILLISECONDS_PER_MINUTE),
}


class Session(Struct, frozen=True, kw_only=True):
    """A browser that is signed in, by the digest of what its cookie holds.

    `address` and `browser` tell people which one it is; sessions of an earlier release have neither. `confirmed_at_ms`
    is when the password was given last.
    """

    digest: bytes
    kind: PersonKind
    person_id: str
    created_at_ms: int
    seen_at_ms: int
    expires_at_ms: int
    address: str | None = None
    browser: str | None = None
    confirmed_at_ms: int | None = None

    def is_live(self, now_ms: int) -> bool:
        """Tell whether it has not ended."""
        return now_ms < self.expires_at_ms

    def is_confirmed(self, now_ms: int) -> bool:
        """Tell whether the password was given in it a short while ago."""
        return self.confirmed_at_ms is not None and abs(now_ms - self.confirmed_at_ms) < CONFIRMED_MS


def begin_session(
    digest: bytes,
    kind: PersonKind,
    person_id: str,
    now_ms: int,
    *,
    address: str | None = None,
    browser: str | None = None,
) -> Session:
    """Sign a browser in, for which the password was given just now."""
    return Session(
        digest=digest,
        kind=kind,
        person_id=person_id,
        created_at_ms=now_ms,
        seen_at_ms=now_ms,
        expires_at_ms=_expiry(kind, now_ms, now_ms),
        address=address,
        browser=browser,
        confirmed_at_ms=now_ms,
    )


def seen_again(session: Session, now_ms: int) -> Session:
    """Let a live session last on from now; it comes back as it is where that was done less than SEEN_EVERY_MS ago."""
    if abs(now_ms - session.seen_at_ms) < SEEN_EVERY_MS:
        return session
    return replace(session, seen_at_ms=now_ms, expires_at_ms=_expiry(session.kind, session.created_at_ms, now_ms))


def _expiry(kind: PersonKind, created_at_ms: int, seen_at_ms: int) -> int:
    lifetime = LIFETIMES[kind]
    return min(seen_at_ms + lifetime.idle_ms, created_at_ms + lifetime.whole_ms)
