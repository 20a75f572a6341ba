"""How many wrong passwords and codes may be given, by whom they were for and by whence they came. Pure.

A browser in which a person has signed in before, a known device, is counted by itself: what strangers try changes
nothing for it, and what it tries changes nothing for others. Strangers are counted by email and address, by address and
by email. Where a count is used up, nothing ends: one more is compared now and then.
"""

from collections.abc import Mapping
from hashlib import sha256

from msgspec import Struct

from tarazu.domain.addresses import place_of
from tarazu.domain.calendar import MILLISECONDS_PER_DAY, MILLISECONDS_PER_MINUTE, MILLISECONDS_PER_SECOND, seconds_until
from tarazu.domain.people import PersonKind


class Rule(Struct, frozen=True):
    """So many failures, within `window_ms` of the first of them, are borne, and one more each `pace_ms` of them."""

    failures_max: int
    window_ms: int
    pace_ms: int


BY_EMAIL_AND_ADDRESS = Rule(5, 15 * MILLISECONDS_PER_MINUTE, 3 * MILLISECONDS_PER_MINUTE)
BY_ADDRESS = Rule(20, 15 * MILLISECONDS_PER_MINUTE, 10 * MILLISECONDS_PER_SECOND)
BY_EMAIL = Rule(100, 60 * MILLISECONDS_PER_MINUTE, 30 * MILLISECONDS_PER_SECOND)
BY_DEVICE = Rule(10, 15 * MILLISECONDS_PER_MINUTE, MILLISECONDS_PER_MINUTE)
BY_CODE = Rule(10, MILLISECONDS_PER_DAY, 60 * MILLISECONDS_PER_MINUTE)
"""Of codes of a second factor, by person, or by the person's known device. There are a million of them."""


class Failures(Struct, frozen=True):
    """The wrong ones of one subject, which are counted until `until_ms`."""

    number: int
    until_ms: int


class Attempt(Struct, frozen=True):
    """What one attempt is counted by: a rule for each subject, a digest. `own` is forgotten when it succeeds."""

    own: bytes
    rules: dict[bytes, Rule]
    is_known: bool = False
    """Whether it comes from a browser in which the person has signed in before."""


def attempt_of(kind: PersonKind, *, email: str, address: str, device: bytes | None = None) -> Attempt:
    """Tell by what a password is counted, whether there is anybody with this email or not.

    `device` is the digest of the browser, where it is a known device of the person with this email.
    """
    if device is not None:
        own = _digest("device", device.hex())
        return Attempt(own, {own: BY_DEVICE}, is_known=True)
    place = place_of(address)
    own = _digest("own", kind, email, place)
    rules = {own: BY_EMAIL_AND_ADDRESS, _digest("address", place): BY_ADDRESS, _digest("email", kind, email): BY_EMAIL}
    return Attempt(own, rules)


def code_attempt_of(kind: PersonKind, person_id: str, *, device: bytes | None = None) -> Attempt:
    """Tell by what a code of a second factor is counted: it is asked for after the right password alone."""
    own = _digest("code", kind, person_id) if device is None else _digest("code", "device", device.hex())
    return Attempt(own, {own: BY_CODE})


def wait_s(attempt: Attempt, failures: Mapping[bytes, Failures], now_ms: int) -> int | None:
    """Tell how many seconds to wait where a rule allows no more for now: until all of them do again."""
    free_ms = [
        _free_ms(found, rule, now_ms)
        for subject, rule in attempt.rules.items()
        if (found := failures.get(subject)) and counts(found, rule, now_ms)
    ]
    latest_ms = max(free_ms, default=now_ms)
    return seconds_until(latest_ms, now_ms) if latest_ms > now_ms else None


def counts(failures: Failures, rule: Rule, now_ms: int) -> bool:
    """Tell whether failures are still counted. An end that is too far ahead was set by a clock that was wrong."""
    return now_ms < failures.until_ms <= now_ms + rule.window_ms


def _free_ms(failures: Failures, rule: Rule, now_ms: int) -> int:
    """Tell when the rule allows one more: now, at the next step of its pace, or when the window has ended."""
    over = failures.number - rule.failures_max
    if over < 0:
        return now_ms
    return min(failures.until_ms, failures.until_ms - rule.window_ms + (over + 1) * rule.pace_ms)


def _digest(*parts: str) -> bytes:
    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).digest()
