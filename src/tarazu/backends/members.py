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
        state, most = self.health.state, self.place.max_concurrency
        is_full = most is not None and self.in_flight >= most
        if state is HealthState.READY:
            return Standing.FULL if is_full else Standing.FREE
        is_resting = now_s < self.health.rests_until_s
        if state is HealthState.BUSY:
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
        free, others = self._look(asked, now_s)
        picked = free or _most_hopeful(others)
        if picked is None:
            return NoPick.WAIT if others else NoPick.NOBODY
        self._turn = max(picked.next_turn, self._turn)
        picked.next_turn = self._turn + 1 / picked.place.weight
        return picked

    def _look(self, asked: Collection[Member], now_s: float) -> tuple[Member | None, list[tuple[Standing, Member]]]:
        """Find the free one with the least load by weight, among equals the one whose turn by weight it is.

        Also list those that are not free, as far as it has looked: it ends with the first priority that has a free one.
        Who was away has saved up no turns. It is one loop, since every request comes through here.
        """
        least: Member | None = None
        least_load = least_turn = 0.0
        others: list[tuple[Standing, Member]] = []
        for member in self._all:
            place = member.place
            if least is not None and place.priority != least.place.priority:
                break
            if member in asked:
                continue
            if (standing := member.standing(now_s)) is not Standing.FREE:
                others.append((standing, member))
                continue
            load, turn = member.in_flight / place.weight, max(member.next_turn, self._turn)
            if least is None or load < least_load or (load == least_load and turn < least_turn):
                least, least_load, least_turn = member, load, turn
        return least, others

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


def _most_hopeful(others: list[tuple[Standing, Member]]) -> Member | None:
    """Find the tripped one to ask; none while one that is well will soon be free."""
    tripped = [member for standing, member in others if standing is Standing.TRIPPED]
    if not tripped or any(standing is Standing.FULL for standing, _ in others):
        return None
    return min(tripped, key=_hope)


def _hope(member: Member) -> tuple[int, float]:
    """Tell by what the tripped are compared: trials, then the end of the rest."""
    return member.trials, member.health.rests_until_s
