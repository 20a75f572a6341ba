"""Sum up a flood of one event: its first lines as they come, then one line in a while that says how many there were."""

from collections.abc import Callable
from threading import Lock
from time import monotonic
from typing import Any

import structlog
from msgspec import Struct

SUM_S = 10.0
"""For so long a kind of event is counted, before those beyond PASS_MAX are summed up in one line."""
PASS_MAX = 10
"""Lines of a kind that are written as they come, in that time."""
COUNTED = {"keys_refused": 60.0}
"""Events of which only one is, and for how long they are counted."""
KINDS_MAX = 1_000
"""That are told apart at once; those beyond are told apart by their event alone."""
KIND_FIELDS = (
    "reason",
    "fault",
    "detail",
    "model",
    "backend",
    "error",
    "at",
    "where",
    "logger",
    "message",
    "problem",
    "operation",
    "key_id",
)
"""Lines of one event that differ in one of these are of different kinds."""
SUMMED = frozenset({"warning", "error", "critical"})
"""Levels of what nobody does on purpose, so that it may come in floods."""

Fields = structlog.types.EventDict


class _Kind(Struct):
    until_s: float
    seen: int = 1
    kept_back: int = 0
    last: Fields | None = None


class Sums:
    """A processor of structlog. The writer of the log asks for the lines that are `due`."""

    def __init__(self, clock_s: Callable[[], float] = monotonic) -> None:
        self._clock_s = clock_s
        self._kinds: dict[tuple[str, ...], _Kind] = {}
        self._lock = Lock()

    def __repr__(self) -> str:
        return f"<Sums of {len(self._kinds)} kinds>"

    def __call__(self, _logger: object, _method: str, fields: Fields) -> Fields:
        """Let the first of its kind pass, and keep the later ones back."""
        if fields["level"] not in SUMMED:
            return fields
        event = fields["event"]
        with self._lock:
            name: tuple[Any, ...] = (event, *(str(fields[each]) for each in KIND_FIELDS if each in fields))
            if name not in self._kinds and len(self._kinds) >= KINDS_MAX:
                name = (event,)
            kind = self._kinds.get(name)
            if kind is None:
                self._kinds[name] = _Kind(self._clock_s() + COUNTED.get(event, SUM_S))
                return fields
            if kind.seen < PASS_MAX and event not in COUNTED:
                kind.seen += 1
                return fields
            kind.kept_back += 1
            kind.last = fields
        raise structlog.DropEvent

    def due(self, *, at_end: bool = False) -> list[Fields]:
        """Give the last line of each kind that was kept back, once its time is over: `times` says how many were."""
        now_s = self._clock_s()
        with self._lock:
            over = [name for name, kind in self._kinds.items() if at_end or now_s >= kind.until_s]
            ended = [self._kinds.pop(name) for name in over]
            for name, kind in zip(over, ended, strict=True):
                if kind.last is not None:  # it goes on: what comes next is summed up with no new beginning
                    pause_s = COUNTED.get(kind.last["event"], SUM_S)
                    self._kinds[name] = _Kind(now_s + pause_s, seen=PASS_MAX)
        return [{**kind.last, "times": kind.kept_back} for kind in ended if kind.last is not None]
