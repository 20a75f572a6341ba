"""A backend's health, as its tries tell it: tripped by failures in a row, trusted again after one trial."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.backends.health import (
    BUSY_REST_MAX_S,
    BUSY_REST_S,
    FAILURES_MAX,
    REST_JITTER,
    REST_MAX_S,
    REST_MIN_S,
    Health,
    HealthState,
    Rest,
)
from tarazu.backends.port import BackendError, Fault, Remedy

DOWN = BackendError(Fault.UNREACHABLE)


def make_health(jitter: float = 0.0) -> Health:
    """Make the health of a backend that nobody has asked."""
    return Health(lambda: jitter)


def fail(health: Health, times: int = FAILURES_MAX, at_s: float = 0.0, error: BackendError = DOWN) -> None:
    """Let several tries in a row fail."""
    for _ in range(times):
        health.failed(error, at_s, at_s, is_trial=False)


def try_again(health: Health) -> float:
    """Let the trial after a rest fail; tell how long the next rest is."""
    end_s = health.rests_until_s
    health.failed(DOWN, end_s, end_s, is_trial=True)
    return health.rests_until_s - end_s


@pytest.mark.parametrize("fault", [fault for fault in Fault if fault.remedy is Remedy.ELSEWHERE])
def test_failures_in_a_row_trip_a_backend(fault: Fault) -> None:
    """One less leaves it ready."""
    health = make_health()
    fail(health, FAILURES_MAX - 1, error=BackendError(fault))
    assert health.state.name == "READY"
    fail(health, 1, error=BackendError(fault))
    assert (health.state, health.rests_until_s) == (HealthState.TRIPPED, REST_MIN_S)


LATE = BackendError(Fault.TIMEOUT)
TRIES = st.lists(
    st.tuples(st.sampled_from([Fault.TIMEOUT, Fault.STATUS, None]), st.sampled_from(["a", "b", None])), max_size=20
)


def test_time_outs_of_one_caller_alone_trip_nothing() -> None:
    """However many; those of a second caller make all of them count, and so does a success make none."""
    health = make_health()
    for _ in range(10 * FAILURES_MAX):
        health.failed(LATE, 0.0, 0.0, is_trial=False, by="a")
    assert health.state.name == "READY"
    health.succeeded(0.0, is_trial=False)
    for by in ("b", "b", "c"):
        assert health.state.name == "READY"
        health.failed(LATE, 0.0, 0.0, is_trial=False, by=by)
    assert health.state.name == "TRIPPED"


def test_a_trial_in_one_callers_hands_tells_nothing() -> None:
    """The rest is not prolonged by it, and the next request tries again."""
    health = make_health()
    fail(health)
    until_s = health.rests_until_s
    health.failed(LATE, until_s, until_s + 9.0, is_trial=True, by="a")
    assert (health.state, health.rests_until_s) == (HealthState.TRIPPED, until_s)
    health.failed(LATE, until_s, until_s + 9.0, is_trial=True, by="b")
    assert health.rests_until_s > until_s


@given(tries=TRIES)
def test_only_what_is_not_one_callers_own_doing_counts(tries: list[tuple[Fault | None, str | None]]) -> None:
    """A backend is tripped exactly when three failures in a row count, time-outs once two callers have had them."""
    health = make_health()
    row: list[tuple[Fault, str | None]] = []
    for fault, by in tries:
        if fault is None:
            row.clear()
            health.succeeded(0.0, is_trial=False)
            continue
        row.append((fault, by))
        health.failed(BackendError(fault), 0.0, 0.0, is_trial=False, by=by)
        late = {by for fault, by in row if fault is Fault.TIMEOUT and by is not None}
        counted = [1 for fault, by in row if fault is not Fault.TIMEOUT or by is None or len(late) > 1]
        is_tripped = health.state is HealthState.TRIPPED
        is_own = fault is Fault.TIMEOUT and by is not None and len(late) == 1
        assert is_tripped == (len(counted) >= FAILURES_MAX and not is_own)
        if is_tripped:
            break


@pytest.mark.parametrize("fault", [fault for fault in Fault if fault.remedy is Remedy.OURS])
def test_what_is_our_own_fault_tells_nothing_of_a_backend(fault: Fault) -> None:
    """Neither that it is down nor that it is well."""
    health = make_health()
    fail(health, 10 * FAILURES_MAX, error=BackendError(fault))
    assert health.state.name == "READY"
    fail(health, FAILURES_MAX - 1)
    fail(health, 1, error=BackendError(fault))
    fail(health, 1)
    assert health.state.name == "TRIPPED"


def test_a_success_between_failures_begins_the_count_again() -> None:
    """Only failures without a success among them tell that a backend is down."""
    health = make_health()
    for _ in range(FAILURES_MAX):
        fail(health, FAILURES_MAX - 1)
        health.succeeded(0.0, is_trial=False)
    assert health.state.name == "READY"


@pytest.mark.parametrize("fault", [fault for fault in Fault if fault.remedy is Remedy.GIVE_UP])
def test_a_request_that_is_refused_tells_that_the_backend_is_well(fault: Fault) -> None:
    """It has read the request and judged it: that is no failure, however many there are, and a trial too."""
    health = make_health()
    fail(health, FAILURES_MAX - 1)
    fail(health, 10 * FAILURES_MAX, error=BackendError(fault))
    fail(health, FAILURES_MAX - 1)
    assert health.state.name == "READY"
    fail(health, 1)
    health.failed(BackendError(fault), 1.0, 1.0, is_trial=True)
    assert health.state.name == "READY"


def test_each_trial_that_fails_doubles_the_rest() -> None:
    """Up to a bound; a trial that succeeds begins again with the shortest."""
    health = make_health()
    fail(health)
    rests = [try_again(health) for _ in range(8)]
    assert rests == [2.0, 4.0, 8.0, 16.0, 32.0, REST_MAX_S, REST_MAX_S, REST_MAX_S]
    health.succeeded(health.rests_until_s, is_trial=True)
    assert health.state.name == "READY"
    fail(health, at_s=1_000.0)
    assert health.rests_until_s == 1_000.0 + REST_MIN_S


def test_rests_are_of_different_length_by_chance() -> None:
    """So that the processes of a service do not all try a backend in the same moment."""
    health = make_health(jitter=1.0)
    fail(health)
    assert health.rests_until_s == pytest.approx(REST_MIN_S * (1 - REST_JITTER))


def test_what_began_before_the_trip_tells_nothing_more() -> None:
    """A backend with a hundred requests dies once: the rest is not a hundred times doubled, nor cut by a late reply."""
    health = make_health()
    fail(health, at_s=5.0)
    until_s = health.rests_until_s
    for _ in range(100):
        health.failed(DOWN, 4.0, 5.5, is_trial=False)
    health.succeeded(4.0, is_trial=False)
    assert (health.state, health.rests_until_s) == (HealthState.TRIPPED, until_s)
    health.failed(DOWN, 1.0, 5.5, is_trial=True)  # a trial of an earlier trip
    assert health.rests_until_s == until_s
    health.succeeded(until_s, is_trial=True)
    for _ in range(FAILURES_MAX):  # these were stalled since before the trip
        health.failed(DOWN, 4.0, 60.0, is_trial=False)
    assert health.state.name == "READY"


@pytest.mark.parametrize(
    ("asked_s", "rests_s"), [(7.0, 7.0), (0.0, 0.0), (None, BUSY_REST_S), (10**6, BUSY_REST_MAX_S)]
)
def test_a_busy_backend_rests_for_as_long_as_it_asks(asked_s: float | None, rests_s: float) -> None:
    """Up to a bound. It is not tripped: no trial, and no failure counted."""
    health = make_health()
    health.failed(BackendError(Fault.BUSY, retry_after_s=asked_s), 1.0, 2.0, is_trial=False)
    assert (health.state, health.rests_until_s) == (HealthState.BUSY, 2.0 + rests_s)
    assert health.is_resting(1.9 + rests_s)
    assert not health.is_resting(2.0 + rests_s)


def test_trials_beside_each_other_lengthen_the_rest_once() -> None:
    """They fail of the same cause."""
    health = make_health()
    fail(health)
    for _ in range(10):
        health.failed(DOWN, 1.0, 2.0, is_trial=True)
    assert health.rests_until_s == 2.0 + 2 * REST_MIN_S


def test_a_busy_backend_can_still_be_tripped() -> None:
    """Failures after its rest count as ever."""
    health = make_health()
    health.failed(BackendError(Fault.BUSY), 0.0, 0.0, is_trial=False)
    fail(health, at_s=5.0)
    assert health.state.name == "TRIPPED"


def test_a_rest_tells_since_when_the_backend_is_not_well() -> None:
    """Since it was last trusted or free to be asked, however often the rest was prolonged; with the newest fault."""
    health = make_health()
    assert health.rest(0.0) is None
    fail(health, at_s=5.0)
    assert health.rest(5.5) == Rest(HealthState.TRIPPED, Fault.UNREACHABLE, 5.0, 6.0)
    assert health.rest(6.0) is None
    health.failed(BackendError(Fault.STATUS), 7.0, 7.0, is_trial=True)
    assert health.rest(7.0) == Rest(HealthState.TRIPPED, Fault.STATUS, 5.0, 9.0)
    health.succeeded(9.0, is_trial=True)
    assert health.rest(9.0) is None
    health.failed(BackendError(Fault.BUSY), 20.0, 20.0, is_trial=False)
    health.failed(BackendError(Fault.BUSY), 20.5, 20.5, is_trial=False)
    assert health.rest(20.5) == Rest(HealthState.BUSY, Fault.BUSY, 20.0, 20.5 + BUSY_REST_S)
    health.failed(BackendError(Fault.BUSY), 99.0, 99.0, is_trial=False)
    assert health.rest(99.0) == Rest(HealthState.BUSY, Fault.BUSY, 99.0, 99.0 + BUSY_REST_S)


def test_whoever_listens_hears_of_each_change_and_of_nothing_else() -> None:
    """A rest that begins or is prolonged, and the trust that comes back; not the tries that change nothing."""
    heard: list[HealthState] = []
    health = Health(lambda: 0.0, lambda: heard.append(health.state))
    health.succeeded(0.0, is_trial=False)
    fail(health, FAILURES_MAX - 1)
    assert heard == []
    fail(health, 1)
    health.failed(DOWN, -1.0, 0.5, is_trial=False)
    assert heard == [HealthState.TRIPPED]
    try_again(health)
    assert heard == [HealthState.TRIPPED] * 2
    health.succeeded(health.rests_until_s, is_trial=True)
    health.succeeded(health.rests_until_s, is_trial=False)
    assert heard == [HealthState.TRIPPED, HealthState.TRIPPED, HealthState.READY]
    health.failed(BackendError(Fault.BUSY), 50.0, 50.0, is_trial=False)
    assert heard[3:] == [HealthState.BUSY]
