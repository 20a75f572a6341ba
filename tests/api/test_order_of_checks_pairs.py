"""Of two checks that fail, the earlier one answers; and what each answer takes from the books."""

from itertools import combinations

import pytest
from msgspec.structs import replace

from tests.support.attempts import BACKEND_CHECK, CHECKS, WINDOWS_CHECK, Check, Outcome, attempt
from tests.support.backend import ScriptedBackend
from tests.support.envelopes import RATE_LIMIT_HEADERS, assert_domain_error, rate_limit_headers
from tests.support.rows import rows
from tests.support.service import RunningService
from tests.support.windows import ONE_TAKEN, Places

PAIRS = [(earlier, later) for earlier, later in combinations(CHECKS, 2) if (earlier.number, later.number) != (2, 3)]
"""A key that is not there cannot be malformed too."""


def _assert_answers(check: Check, outcome: Outcome) -> None:
    assert_domain_error(outcome.answer, check.status, check.code)
    has_reached_windows = check.number >= WINDOWS_CHECK
    assert rate_limit_headers(outcome.answer) == (RATE_LIMIT_HEADERS if has_reached_windows else set())
    before = outcome.places_before
    takes_a_place = check.number > WINDOWS_CHECK  # a window that is full has none to give
    assert outcome.places == (Places(before.account + 1, before.key + 1) if takes_a_place else before)
    assert replace(outcome.account, window=outcome.account_before.window) == outcome.account_before
    assert (outcome.backend_calls > 0) is (check.number == BACKEND_CHECK)


@pytest.mark.parametrize("check", CHECKS, ids=str)
def test_a_check_that_fails_alone_answers(service: RunningService, backend: ScriptedBackend, check: Check) -> None:
    """Each check answers with its own error, costs no credits, asks no backend, and takes one place from row 8 on."""
    _assert_answers(check, attempt(service, backend, check))


@pytest.mark.parametrize(("earlier", "later"), PAIRS, ids=lambda check: f"{check}-")
def test_the_earlier_of_two_failing_checks_answers(
    service: RunningService, backend: ScriptedBackend, earlier: Check, later: Check
) -> None:
    """The later check is not reached: the answer and the books are as if the earlier had failed alone."""
    _assert_answers(earlier, attempt(service, backend, earlier, later))


@pytest.mark.parametrize("first", CHECKS[1:], ids=lambda check: f"{check}-")
def test_all_from_one_check_on_fail(service: RunningService, backend: ScriptedBackend, first: Check) -> None:
    """However many later checks fail too, the first that fails answers."""
    later = [check for check in CHECKS if check.number >= first.number and (first.number, check.number) != (2, 3)]
    _assert_answers(first, attempt(service, backend, *later))


@rows(*map(str, CHECKS))
def test_what_fails_no_check_is_served(service: RunningService, backend: ScriptedBackend) -> None:
    """The same call without a fault is answered 200, pays once, asks once, and takes one place in each window."""
    outcome = attempt(service, backend)
    assert outcome.answer.status == 200
    assert rate_limit_headers(outcome.answer) == RATE_LIMIT_HEADERS
    assert outcome.places == ONE_TAKEN
    assert outcome.account.used == outcome.account_before.used + 1
    assert outcome.backend_calls == 1
