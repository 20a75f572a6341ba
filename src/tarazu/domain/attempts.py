"""How many wrong passwords may be given: counted by whom they were for and by whence they came. Pure."""

from collections.abc import Mapping
from hashlib import sha256
from ipaddress import IPv6Address, ip_address, ip_network

from msgspec import Struct

from tarazu.domain.calendar import MILLISECONDS_PER_MINUTE, seconds_until
from tarazu.domain.people import PersonKind

IPV6_PREFIX_BITS = 64
"""What one customer of a network is given at least."""


class Rule(Struct, frozen=True):
    """So many failures, within `window_ms` of the first of them, are borne."""

    failures_max: int
    window_ms: int


BY_EMAIL_AND_ADDRESS = Rule(5, 15 * MILLISECONDS_PER_MINUTE)
BY_ADDRESS = Rule(20, 15 * MILLISECONDS_PER_MINUTE)
BY_EMAIL = Rule(100, 60 * MILLISECONDS_PER_MINUTE)


class Failures(Struct, frozen=True):
    """The wrong passwords of one subject, which are counted until `until_ms`."""

    number: int
    until_ms: int


class Attempt(Struct, frozen=True):
    """What one attempt to sign in is counted by, as digests. `own` is forgotten when it succeeds."""

    own: bytes
    address: bytes
    email: bytes

    @property
    def rules(self) -> dict[bytes, Rule]:
        """The rule for each of them."""
        return {self.own: BY_EMAIL_AND_ADDRESS, self.address: BY_ADDRESS, self.email: BY_EMAIL}


def attempt_of(kind: PersonKind, *, email: str, address: str) -> Attempt:
    """Tell by what an attempt is counted, whether there is anybody with this email or not."""
    place = _place(address)
    return Attempt(
        own=_digest("own", kind, email, place), address=_digest("address", place), email=_digest("email", kind, email)
    )


def wait_s(attempt: Attempt, failures: Mapping[bytes, Failures], now_ms: int) -> int | None:
    """Tell how many seconds to wait where a rule allows no more for now: until all of them do again."""
    ends_ms = [
        found.until_ms
        for subject, rule in attempt.rules.items()
        if (found := failures.get(subject)) and counts(found, rule, now_ms) and found.number >= rule.failures_max
    ]
    return seconds_until(max(ends_ms), now_ms) if ends_ms else None


def counts(failures: Failures, rule: Rule, now_ms: int) -> bool:
    """Tell whether failures are still counted. An end that is too far ahead was set by a clock that was wrong."""
    return now_ms < failures.until_ms <= now_ms + rule.window_ms


def _place(address: str) -> str:
    """Write an address in one form, and for IPv6 the network that it is in: one person has all of that."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ip_network((parsed, IPV6_PREFIX_BITS), strict=False))


def _digest(*parts: str) -> bytes:
    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).digest()
