"""Sum up what several processes say of one backend."""

from collections.abc import Collection

DISABLED = "disabled"
READY = "ready"
RESTING = ("tripped", "busy")
"""One process that has tripped a backend says more than one that found it busy."""


def health_of(states: Collection[str], *, enabled: bool) -> str:
    """Tell how a backend is: disabled, tripped, busy or ready. `states` are those in which processes let it rest."""
    if not enabled:
        return DISABLED
    return next((state for state in RESTING if state in states), READY)
