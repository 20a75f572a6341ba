"""The backends of one pool, and the pick of the one that a request asks next: a few comparisons, no lock, no call."""

from collections.abc import Callable, Collection, Iterator, Sequence
from enum import Enum

from msgspec import Struct

from tarazu.backends.health import Health, HealthState, unheard
from tarazu.backends.port import Backend


class Place(Struct, frozen=True, kw_only=True):
    """Where a backend stands in its pool.

    Those of the lowest `priority` are asked first; among equals load is shared by `weight`. At most `max_concurrency`
    requests of this process are with it at once, and each try takes `timeout_s` at most; None is no bound.
    """

    priority: int = 0
    weight: int = 1
    max_concurrency: int | None = None
    timeout_s: float | None = None


class Standing(Enum):
    """How a backend stands to a request that looks for one."""

    FREE = "free"
    FULL = "full"
    """Well, and soon free again."""
    BUSY = "busy"
    """To be left alone for a while."""
    TRIPPED = "tripped"
    """It rests, or one request is trying whether it is well again."""


class Member:
    """One backend of a pool: its place, its health, and how many requests are with it."""

    def __init__(
        self,
        backend: Backend,
        place: Place,
        jitter: Callable[[], float],
        on_change: Callable[[], None] = unheard,
    ) -> None:
        self.backend = backend
        self.place = place
        self.health = Health(jitter, on_change)
        self.in_flight = 0
        self.trials = 0
        """So many requests are with it to see whether it is well again: one, unless there is no other backend."""
        self.next_turn = 0.0
        """When its turn comes again among equals without load: the later, the smaller its weight."""

    def __repr__(self) -> str:
        return f"<Member {self.backend.name}, {self.health.state.value}, {self.in_flight} in flight>"

    def standing(self, now_s: float) -> Standing:
        """Tell how it stands now to a request that looks for a backend."""
        health, most = self.health, self.place.max_concurrency
        is_full = most is not None and self.in_flight >= most
        is_resting = health.state is not HealthState.READY and health.is_resting(now_s)
        if health.state is not HealthState.TRIPPED:
            return Standing.BUSY if is_resting else Standing.FULL if is_full else Standing.FREE
        if is_full:
            return Standing.BUSY
        return Standing.TRIPPED if is_resting or self.trials else Standing.FREE


class NoPick(Enum):
    """Why no backend was picked."""

    WAIT = "wait"
    """One that may still be asked is full or busy."""
    NOBODY = "nobody"
    """All that are left are asked already."""


class Members:
    """All backends of a pool, by priority."""

    def __init__(self, members: Sequence[Member]) -> None:
        self._all = tuple(sorted(members, key=lambda member: member.place.priority))
        self._turn = 0.0

    def __iter__(self) -> Iterator[Member]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def pick(self, asked: Collection[Member], now_s: float) -> Member | NoPick:
        """Pick the least loaded of the free backends of the first priority that has any, of those not yet `asked`.

        When nobody is free or will be, a tripped one is asked all the same: a request is not given up, nor kept waiting
        for a slow trial, while there is somebody who might serve it.
        """
        left = [(member.standing(now_s), member) for member in self._all if member not in asked]
        free = [member for standing, member in left if standing is Standing.FREE]
        tripped = [member for standing, member in left if standing is Standing.TRIPPED]
        if free:
            first = free[0].place.priority
            picked = min((member for member in free if member.place.priority == first), key=self._load)
        elif tripped and all(standing is not Standing.FULL for standing, _ in left):
            picked = min(tripped, key=_hope)
        else:
            return NoPick.WAIT if left else NoPick.NOBODY
        self._turn = max(picked.next_turn, self._turn)
        picked.next_turn = self._turn + 1 / picked.place.weight
        return picked

    def all_rest_until(self, asked: Collection[Member], until_s: float) -> bool:
        """Tell whether all that are not yet `asked` want to be left alone until then, and for longer."""
        return all(
            member.health.state is HealthState.BUSY and member.health.rests_until_s > until_s
            for member in self._all
            if member not in asked
        )

    def next_rest_end_s(self, now_s: float) -> float | None:
        """Tell when the next rest ends; None when nobody rests."""
        ends = [member.health.rests_until_s for member in self._all if member.health.is_resting(now_s)]
        return min(ends, default=None)

    def _load(self, member: Member) -> tuple[float, float]:
        """Tell by what the pick compares: load by weight, then turns by weight; who was away has saved up none."""
        return member.in_flight / member.place.weight, max(member.next_turn, self._turn)


def _hope(member: Member) -> tuple[int, float]:
    """Tell by what the tripped are compared: trials, then the end of the rest."""
    return member.trials, member.health.rests_until_s
