"""How time passes: mostly a little, now and then to just before, at or just after an edge."""

from collections.abc import Collection
from datetime import datetime, timedelta
from random import Random
from zoneinfo import ZoneInfo

from tests.support.values import DAY_MS, MINUTE_MS

PAUSE_MAX_MS = 3_000
HOUR_MS = 60 * MINUTE_MS
SKEWS_MS = (0, 0, 0, -30_000, 30_000, -MINUTE_MS, MINUTE_MS, -HOUR_MS, HOUR_MS, -DAY_MS, DAY_MS)


def choose_pause_ms(random: Random, now_ms: int, zone: ZoneInfo, deadlines_ms: Collection[int]) -> int:
    """Tell how long nothing happens; `deadlines_ms` are those of the holds. Never negative."""
    kind = random.choices(["little", "minute", "deadline", "month", "day"], weights=[68, 16, 9, 3, 4])[0]
    around = random.choice([-1, 0, 1])
    if kind == "minute":
        return MINUTE_MS - now_ms % MINUTE_MS + around
    if kind == "month":
        return month_edge_ms(now_ms, zone, months=1) - now_ms + around
    if kind == "day":
        return random.choice([HOUR_MS, DAY_MS - 1, DAY_MS, DAY_MS + HOUR_MS])
    ahead = sorted(deadline_ms for deadline_ms in deadlines_ms if deadline_ms > now_ms)
    if kind == "deadline" and ahead:
        return random.choice(ahead[:2]) - now_ms + random.choice([0, 1, 5_000])
    return random.randrange(PAUSE_MAX_MS)


def choose_skew_ms(random: Random, now_ms: int, zone: ZoneInfo) -> int:
    """Tell how far a process's clock is off: not at all, a little, much, or to the edge of a month."""
    edge_ms = month_edge_ms(now_ms, zone, months=random.randrange(2)) - now_ms
    return random.choice([*SKEWS_MS, random.randint(-1_000, 1_000), edge_ms, edge_ms - 1])


def month_edge_ms(now_ms: int, zone: ZoneInfo, *, months: int) -> int:
    """Tell when the current month began (0), or the next one will begin (1), in the zone."""
    first = datetime.fromtimestamp(now_ms / 1_000, zone).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    if months:
        first = (first + timedelta(days=31)).replace(day=1)
    return round(first.timestamp() * 1_000)
