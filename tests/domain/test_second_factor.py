"""A second factor: the codes of RFC 6238, each good once, and recovery codes."""

from base64 import b32encode
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.domain.second_factor import (
    DRIFT_STEPS,
    RECOVERY_CODES,
    RECOVERY_ENTROPY_BYTES,
    STEP_MS,
    SecondFactor,
    begin,
    code_at,
    recovery_codes,
    secret_of,
    secret_text,
    setup_address,
    step_at,
)
from tests.support.values import NOON_MS

SECRET = b"12345678901234567890"
"""That of the examples of RFC 4226 and 6238."""
CODES = recovery_codes(bytes(range(240)))
NOW = step_at(NOON_MS)


def factor(last_step: int = 0) -> SecondFactor:
    """Make one that was set up long ago."""
    made = begin(SECRET, code_at(SECRET, last_step), CODES, last_step * STEP_MS)
    assert made is not None
    return made


@pytest.mark.parametrize(
    ("second", "code"),
    [(59, "287082"), (1111111109, "081804"), (1111111111, "050471"), (1234567890, "005924"), (2000000000, "279037")],
)
def test_the_codes_are_those_of_the_standard(second: int, code: str) -> None:
    """The last six digits of the examples of RFC 6238, appendix B."""
    assert code_at(SECRET, step_at(second * 1_000)) == code


@pytest.mark.parametrize("drift", range(-DRIFT_STEPS - 1, DRIFT_STEPS + 2))
def test_a_clock_may_be_a_step_off(drift: int) -> None:
    """Either way, and no more."""
    assert (factor().used(code_at(SECRET, NOW + drift), NOON_MS) is not None) is (abs(drift) <= DRIFT_STEPS)


@given(st.lists(st.tuples(st.integers(0, 3 * STEP_MS), st.integers(-2, 2)), max_size=30))
def test_no_step_is_good_twice_and_none_before_one_that_was_used(tries: list[tuple[int, int]]) -> None:
    """Whenever codes are given, and however late: the steps of those that were taken only grow."""
    left, now_ms, taken = factor(), NOON_MS, [0]
    for pause_ms, drift in tries:
        now_ms += pause_ms
        step = step_at(now_ms) + drift
        used = left.used(code_at(SECRET, step), now_ms)
        if used is not None:
            taken.append(used.last_step)
            left = used
        else:
            assert step <= left.last_step or abs(drift) > DRIFT_STEPS
    assert taken == sorted(set(taken))


@pytest.mark.parametrize("text", ["", "0", "12345", "1234567", "abcdef", "٠٠٠٠٠", "1" * 65, "\ud83d" * 6, "12345\0"])
def test_what_is_no_code_is_not_good(text: str) -> None:
    """Whatever is sent in its place."""
    assert factor().used(text, NOON_MS) is None


def test_a_code_may_be_written_as_people_write() -> None:
    """With a space in the middle, and in the digits of their language."""
    code = code_at(SECRET, NOW)
    persian = "".join(chr(ord("۰") + int(digit)) for digit in code)
    for text in (f" {code[:3]} {code[3:]} ", persian, f"{code[:3]}-{code[3:]}"):
        assert factor().used(text, NOON_MS) is not None


def test_a_recovery_code_is_good_once() -> None:
    """With hyphens, spaces or neither; the other nine stay, and so does the step."""
    left = factor().used(CODES[3].replace("-", " "), NOON_MS)
    assert left is not None
    assert left.used(CODES[3], NOON_MS) is None
    assert left.last_step == factor().last_step
    assert len(left.recovery) == RECOVERY_CODES - 1
    assert left.used(CODES[4], NOON_MS) is not None
    assert left.used(CODES[4].lower(), NOON_MS) is None


def test_recovery_codes_are_different_and_in_groups() -> None:
    """Three of four characters."""
    assert len(set(CODES)) == RECOVERY_CODES == len(bytes(range(240))) // RECOVERY_ENTROPY_BYTES
    assert all([len(part) for part in code.split("-")] == [4, 4, 4] for code in CODES)


def test_it_is_set_up_by_a_code_that_its_application_has_made() -> None:
    """Else nothing is; the code that was given is used up with it."""
    assert begin(SECRET, code_at(SECRET, NOW + 2), CODES, NOON_MS) is None
    assert begin(SECRET, CODES[0], CODES, NOON_MS) is None
    made = begin(SECRET, code_at(SECRET, NOW), CODES, NOON_MS)
    assert made is not None
    assert made.used(code_at(SECRET, NOW), NOON_MS) is None
    assert made.used(code_at(SECRET, NOW + 1), NOON_MS) is not None
    assert "12345" not in repr(made)


def test_a_secret_reads_back_and_nothing_else_does() -> None:
    """It is 20 bytes in base32."""
    assert secret_of(secret_text(SECRET)) == SECRET
    for text in ("", "é", "A" * 31, "1" * 32, b32encode(bytes(10)).decode()):
        assert secret_of(text) is None


def test_applications_read_the_address() -> None:
    """Who it is for, and the secret."""
    parts = urlsplit(setup_address(SECRET, service="Tarazu", email="ada+x@example.com"))
    assert (parts.scheme, parts.netloc, parts.path) == ("otpauth", "totp", "/Tarazu%3Aada%2Bx%40example.com")
    assert parse_qs(parts.query) == {"secret": [secret_text(SECRET)], "issuer": ["Tarazu"]}
