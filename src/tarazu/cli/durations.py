"""Read durations as people write them: 90d, 12h, 1h30m, 45s. Pure."""

import re

DURATION_DAYS_MAX = 36_500
_UNITS_S = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
DURATION_S_MAX = DURATION_DAYS_MAX * _UNITS_S["d"]

_DURATION = re.compile("".join(rf"(?:(?P<{unit}>[0-9]{{1,10}}){unit})?" for unit in _UNITS_S))


def duration_s(text: str) -> int:
    """Read a duration in whole seconds: days, hours, minutes and seconds, in this order, each at most once.

    Raises:
        ValueError: it is none, or longer than DURATION_DAYS_MAX days; the message is for the person who wrote it.
    """
    match = _DURATION.fullmatch(text)
    if not text or match is None:
        raise ValueError(f"expected a duration such as 90d, 12h, 1h30m or 45s, got {text!r}")
    seconds = sum(int(match[unit] or 0) * unit_s for unit, unit_s in _UNITS_S.items())
    if seconds > DURATION_S_MAX:
        raise ValueError(f"expected at most {DURATION_DAYS_MAX}d, got {text}")
    return seconds
