"""How many wrong passwords may be given, by whom they were for and whence they came."""

import pytest

from tarazu.domain.attempts import BY_ADDRESS, BY_EMAIL, BY_EMAIL_AND_ADDRESS, Failures, Rule, attempt_of, wait_s
from tarazu.domain.people import PersonKind
from tests.support.values import MINUTE_MS, NOON_MS

HOLDER, OPERATOR = PersonKind.HOLDER, PersonKind.OPERATOR
ADA = attempt_of(HOLDER, email="ada@example.com", address="192.0.2.1")


def place_of(address: str) -> bytes:
    """Tell what an address is counted by."""
    return attempt_of(HOLDER, email="ada@example.com", address=address).address


def test_the_rules_are_those_that_are_told() -> None:
    """5 by email and address and 20 by address in 15 minutes, 100 by email in an hour."""
    rules = ADA.rules
    assert [rules[subject] for subject in (ADA.own, ADA.address, ADA.email)] == [
        Rule(5, 15 * MINUTE_MS),
        Rule(20, 15 * MINUTE_MS),
        Rule(100, 60 * MINUTE_MS),
    ]


def test_without_failures_there_is_nothing_to_wait_for() -> None:
    """The first attempt is always allowed."""
    assert wait_s(ADA, {}, NOON_MS) is None


@pytest.mark.parametrize("name", ["own", "address", "email"])
def test_each_rule_bears_so_many_and_no_more(name: str) -> None:
    """At the bound the next one waits for the end of the window, in whole seconds, at least one."""
    subject = getattr(ADA, name)
    most = ADA.rules[subject].failures_max
    until_ms = NOON_MS + 90_001
    assert wait_s(ADA, {subject: Failures(most - 1, until_ms)}, NOON_MS) is None
    assert wait_s(ADA, {subject: Failures(most, until_ms)}, NOON_MS) == 91
    assert wait_s(ADA, {subject: Failures(most, until_ms)}, until_ms - 1) == 1
    assert wait_s(ADA, {subject: Failures(most, until_ms)}, until_ms) is None


def test_of_several_rules_the_longest_wait_is_told() -> None:
    """Whoever comes back then is let in."""
    failures = {
        ADA.own: Failures(BY_EMAIL_AND_ADDRESS.failures_max, NOON_MS + 10_000),
        ADA.address: Failures(BY_ADDRESS.failures_max, NOON_MS + 30_000),
        ADA.email: Failures(BY_EMAIL.failures_max - 1, NOON_MS + 50_000),
    }
    assert wait_s(ADA, failures, NOON_MS) == 30


def test_a_clock_that_was_far_ahead_locks_nobody_out() -> None:
    """An end beyond the rule's window is none that this clock has set."""
    subject, rule = ADA.own, BY_EMAIL_AND_ADDRESS
    failures = Failures(rule.failures_max, NOON_MS + rule.window_ms)
    assert wait_s(ADA, {subject: failures}, NOON_MS) == 900
    assert wait_s(ADA, {subject: failures}, NOON_MS - 1) is None


def test_each_is_counted_apart() -> None:
    """By world, email and address; an address is one for both worlds."""
    same = attempt_of(HOLDER, email="ada@example.com", address="192.0.2.1")
    operator = attempt_of(OPERATOR, email="ada@example.com", address="192.0.2.1")
    elsewhere = attempt_of(HOLDER, email="ada@example.com", address="192.0.2.2")
    grace = attempt_of(HOLDER, email="grace@example.com", address="192.0.2.1")
    assert same == ADA
    assert len({ADA.own, operator.own, elsewhere.own, grace.own}) == 4
    assert ADA.address == operator.address == grace.address != elsewhere.address
    assert ADA.email == elsewhere.email
    assert len({ADA.email, operator.email, grace.email}) == 3


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8::1", "2001:0DB8:0:0:ffff::2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("fe80::1%eth0", "fe80::2%eth0", True),
        ("", "", True),
        ("unix:", "", False),
        ("\ud83d", "\ud83d", True),
    ],
)
def test_an_address_is_one_place_however_it_is_written(one: str, other: str, same: bool) -> None:  # noqa: FBT001 - a case
    """An IPv6 network of 64 bits is one; what is no address is a place as it is written."""
    assert (place_of(one) == place_of(other)) is same
