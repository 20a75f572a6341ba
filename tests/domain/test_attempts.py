"""How many wrong passwords may be given, by whom they were for and whence they came."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.domain.attempts import (
    BY_ADDRESS,
    BY_CODE,
    BY_DEVICE,
    BY_EMAIL,
    BY_EMAIL_AND_ADDRESS,
    Attempt,
    Failures,
    Rule,
    attempt_of,
    code_attempt_of,
    counts,
    wait_s,
)
from tarazu.domain.people import PersonKind
from tests.support.values import DAY_MS, MINUTE_MS, NOON_MS

HOLDER, OPERATOR = PersonKind.HOLDER, PersonKind.OPERATOR
ADA = attempt_of(HOLDER, email="ada@example.com", address="192.0.2.1")
DEVICE = bytes(32)
KNOWN = attempt_of(HOLDER, email="ada@example.com", address="192.0.2.1", device=DEVICE)


def place_of(address: str) -> bytes:
    """Tell what an address is counted by."""
    return subjects(attempt_of(HOLDER, email="ada@example.com", address=address))[1]


def subjects(attempt: Attempt) -> tuple[bytes, bytes, bytes]:
    """Tell what an attempt is counted by: email and address, address, email."""
    own, address, email = attempt.rules
    return own, address, email


def test_the_rules_are_those_that_are_told() -> None:
    """5 by email and address and 20 by address in 15 minutes, 100 by email in an hour; then one more now and then."""
    assert list(ADA.rules.values()) == [
        Rule(5, 15 * MINUTE_MS, 3 * MINUTE_MS),
        Rule(20, 15 * MINUTE_MS, 10_000),
        Rule(100, 60 * MINUTE_MS, 30_000),
    ]
    assert list(KNOWN.rules.values()) == [Rule(10, 15 * MINUTE_MS, MINUTE_MS)]
    assert list(code_attempt_of(HOLDER, "acc_1").rules.values()) == [Rule(10, DAY_MS, 60 * MINUTE_MS)]


def test_without_failures_there_is_nothing_to_wait_for() -> None:
    """The first attempt is always allowed."""
    assert wait_s(ADA, {}, NOON_MS) is None


@pytest.mark.parametrize("place", range(3))
def test_each_rule_bears_so_many_and_then_one_now_and_then(place: int) -> None:
    """At the bound the next one waits for a step of the pace, or for the end of the window; in whole seconds."""
    subject, rule = list(ADA.rules.items())[place]
    most, begin_ms, end_ms = rule.failures_max, NOON_MS, NOON_MS + rule.window_ms
    assert wait_s(ADA, {subject: Failures(most - 1, end_ms)}, begin_ms) is None
    assert wait_s(ADA, {subject: Failures(most, end_ms)}, begin_ms) == rule.pace_ms // 1_000
    assert wait_s(ADA, {subject: Failures(most, end_ms)}, begin_ms + rule.pace_ms - 1) == 1
    assert wait_s(ADA, {subject: Failures(most, end_ms)}, begin_ms + rule.pace_ms) is None
    assert wait_s(ADA, {subject: Failures(most + 1, end_ms)}, begin_ms + rule.pace_ms) == rule.pace_ms // 1_000
    assert wait_s(ADA, {subject: Failures(most * 1_000, end_ms)}, end_ms - 1) == 1
    assert wait_s(ADA, {subject: Failures(most * 1_000, end_ms)}, end_ms) is None


@given(
    st.sampled_from([BY_EMAIL_AND_ADDRESS, BY_ADDRESS, BY_EMAIL, BY_DEVICE, BY_CODE]),
    st.lists(st.integers(min_value=0, max_value=2 * MINUTE_MS), min_size=1, max_size=400),
)
def test_no_way_of_trying_gets_more_compared_than_the_rule_allows(rule: Rule, pauses_ms: list[int]) -> None:
    """In a window: as many as it bears, and one for each step of its pace that has passed; and the pace is kept up."""
    attempt = Attempt(b"x", {b"x": rule})
    failures: dict[bytes, Failures] = {}
    now_ms, begin_ms = NOON_MS, NOON_MS
    compared = 0
    for pause_ms in pauses_ms:
        now_ms += pause_ms
        if b"x" not in failures or not counts(failures[b"x"], rule, now_ms):
            failures, begin_ms, compared = {}, now_ms, 0
        waits_s = wait_s(attempt, failures, now_ms)
        allowed = rule.failures_max + (now_ms - begin_ms) // rule.pace_ms
        assert (waits_s is None) == (compared < allowed)
        if waits_s is None:
            compared += 1
            failures = {b"x": Failures(compared, begin_ms + rule.window_ms)}
        else:
            assert wait_s(attempt, failures, now_ms + waits_s * 1_000) is None
    assert compared <= rule.failures_max + rule.window_ms // rule.pace_ms


@given(st.lists(st.sampled_from([0, 1, 2]), max_size=300))
def test_nothing_that_strangers_try_makes_a_known_browser_wait(tried: list[int]) -> None:
    """Whatever is counted by address, by email or by both: a known browser is counted by nothing of it."""
    failures = {subject: Failures(10_000, NOON_MS + rule.window_ms) for subject, rule in ADA.rules.items()}
    assert wait_s(KNOWN, failures, NOON_MS) is None
    counted = {list(ADA.rules)[place] for place in tried}
    assert not counted & set(KNOWN.rules)
    assert not set(code_attempt_of(HOLDER, "acc_1", device=DEVICE).rules) & set(code_attempt_of(HOLDER, "acc_1").rules)


def test_of_several_rules_the_longest_wait_is_told() -> None:
    """Whoever comes back then is let in."""
    own, address, email = subjects(ADA)
    failures = {
        own: Failures(BY_EMAIL_AND_ADDRESS.failures_max, NOON_MS + 10_000),
        address: Failures(1_000, NOON_MS + 30_000),
        email: Failures(BY_EMAIL.failures_max - 1, NOON_MS + 50_000),
    }
    assert wait_s(ADA, failures, NOON_MS) == 30


def test_a_clock_that_was_far_ahead_locks_nobody_out() -> None:
    """An end beyond the rule's window is none that this clock has set."""
    subject, rule = ADA.own, BY_EMAIL_AND_ADDRESS
    failures = Failures(rule.failures_max, NOON_MS + rule.window_ms)
    assert wait_s(ADA, {subject: failures}, NOON_MS) == 180
    assert wait_s(ADA, {subject: failures}, NOON_MS - 1) is None


def test_each_is_counted_apart() -> None:
    """By world, email and address; an address is one for both worlds."""
    same = attempt_of(HOLDER, email="ada@example.com", address="192.0.2.1")
    operator = attempt_of(OPERATOR, email="ada@example.com", address="192.0.2.1")
    elsewhere = attempt_of(HOLDER, email="ada@example.com", address="192.0.2.2")
    grace = attempt_of(HOLDER, email="grace@example.com", address="192.0.2.1")
    assert same == ADA
    owns, addresses, emails = zip(*map(subjects, (ADA, operator, elsewhere, grace)), strict=True)
    assert len(set(owns)) == 4
    assert addresses[0] == addresses[1] == addresses[3] != addresses[2]
    assert emails[0] == emails[2]
    assert len({emails[0], emails[1], emails[3]}) == 3


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
