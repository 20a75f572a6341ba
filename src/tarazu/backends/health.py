"""What its tries tell of a backend's health: who fails several times in a row rests, and must prove itself again."""

from collections.abc import Callable
from enum import StrEnum

from msgspec import Struct

from tarazu.backends.port import BackendError, Fault, Remedy

FAILURES_MAX = 3
"""Failures in a row after which a backend is tripped."""
LATE_CALLERS_MIN = 2
"""Of so many callers must requests run out of time, where it is in their hands how long these take, to be failures."""
REST_MIN_S = 1.0
REST_MAX_S = 60.0
"""The pause doubles with every trial that fails, from the least to the most."""
REST_JITTER = 0.2
"""A pause is up to this part shorter, so that processes do not all try again at once."""
BUSY_REST_S = 1.0
"""For a backend that is busy and does not say how long."""
BUSY_REST_MAX_S = 300.0


class HealthState(StrEnum):
    """Whether a backend may be asked."""

    READY = "ready"
    BUSY = "busy"
    """It has asked to be left alone until its rest is over; that is no failure."""
    TRIPPED = "tripped"
    """It has failed too often. One request tries it after its rest; only when that succeeds is it trusted again."""


class Rest(Struct, frozen=True):
    """A backend is left alone, as `state` says why, since it was last well; `fault` is the newest one."""

    state: HealthState
    fault: Fault
    since_s: float
    until_s: float


def unheard() -> None:
    """Stand in for whoever wants to hear of changes."""


class Health:
    """The health of one backend. Instants are seconds of a clock that never steps back.

    `jitter` gives numbers from 0 to 1. `on_change` is called when a rest begins or is prolonged, and when the backend
    is trusted again.
    """

    def __init__(self, jitter: Callable[[], float], on_change: Callable[[], None] = unheard) -> None:
        self.state = HealthState.READY
        self.rests_until_s = 0.0
        self._jitter = jitter
        self._failures = 0
        self._late_callers: set[str] = set()
        self._late_uncounted = 0
        """So many requests have run out of time since the backend was last well, all of one caller."""
        self._rest_s = REST_MIN_S
        self._changed_at_s = float("-inf")
        self._since_s = float("-inf")
        self._fault: Fault | None = None
        self._on_change = on_change

    def __repr__(self) -> str:
        return f"<Health {self.state}, {self._failures} failures>"

    def is_resting(self, now_s: float) -> bool:
        """Tell whether it is to be left alone now."""
        return self.state is not HealthState.READY and now_s < self.rests_until_s

    def rest(self, now_s: float) -> Rest | None:
        """Describe the rest that it is to be given now; None: none."""
        if self._fault is None or not self.is_resting(now_s):
            return None
        return Rest(self.state, self._fault, self._since_s, self.rests_until_s)

    def succeeded(self, began_at_s: float, *, is_trial: bool) -> None:
        """Take note of a valid reply to a try, or of a refusal that was the request's own fault."""
        if self._is_news(began_at_s, is_trial=is_trial):
            was_ready = self.state is HealthState.READY
            self.state = HealthState.READY
            self._failures = 0
            self._late_callers.clear()
            self._late_uncounted = 0
            self._rest_s = REST_MIN_S
            if not was_ready:
                self._on_change()

    def failed(
        self, error: BackendError, began_at_s: float, now_s: float, *, is_trial: bool, by: str | None = None
    ) -> None:
        """Take note of a failed try; `by` is the caller in whose hands it was how long it would take, if it was.

        What began before the backend was tripped tells nothing new: when one dies, all that it was doing fails. Nor
        does a second trial beside one that has failed. Time-outs of one caller alone tell of the caller.
        """
        if error.fault.remedy is Remedy.OURS:
            return
        if error.fault.remedy is Remedy.GIVE_UP:
            self.succeeded(began_at_s, is_trial=is_trial)
        elif not self._is_news(began_at_s, is_trial=is_trial):
            return
        elif error.fault.remedy is Remedy.WAIT:
            rest_s = BUSY_REST_S if error.retry_after_s is None else error.retry_after_s
            self._rest(HealthState.BUSY, error.fault, now_s, min(rest_s, BUSY_REST_MAX_S))
        elif error.fault is not Fault.TIMEOUT or by is None or self._are_many_late(by):
            self._failures += 1
            if is_trial or self._failures >= FAILURES_MAX:
                self._trip(error.fault, now_s)

    def _are_many_late(self, caller: str) -> bool:
        """Tell whether requests of several callers have run out of time; those of the first count then too."""
        if len(self._late_callers) < LATE_CALLERS_MIN:
            self._late_callers.add(caller)
        if len(self._late_callers) < LATE_CALLERS_MIN:
            self._late_uncounted += 1
            return False
        self._failures += self._late_uncounted
        self._late_uncounted = 0
        return True

    def _trip(self, fault: Fault, now_s: float) -> None:
        self._rest(HealthState.TRIPPED, fault, now_s, self._rest_s * (1 - REST_JITTER * self._jitter()))
        self._rest_s = min(self._rest_s * 2, REST_MAX_S)

    def _rest(self, state: HealthState, fault: Fault, now_s: float, rest_s: float) -> None:
        if self.state is not HealthState.TRIPPED and not self.is_resting(now_s):
            self._since_s = now_s
        self.state = state
        self._fault = fault
        self.rests_until_s = now_s + rest_s
        self._changed_at_s = now_s
        self._on_change()

    def _is_news(self, began_at_s: float, *, is_trial: bool) -> bool:
        return began_at_s >= self._changed_at_s and (is_trial or self.state is not HealthState.TRIPPED)
