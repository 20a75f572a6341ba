"""The backends of one model: asked one after the other until one gives a valid reply, all within one deadline."""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import structlog
from msgspec import Struct

from tarazu.backends.health import HealthState, Rest, unheard
from tarazu.backends.members import Member, Members, Place
from tarazu.backends.port import Backend, BackendError, Fault, Remedy, Reply
from tarazu.backends.turns import NobodyError, Turn, Turns
from tarazu.domain.calendar import MILLISECONDS_PER_SECOND
from tarazu.domain.prompt import ChatRequest, capped, without_format

AGAIN_TRIES_MAX = 3
"""So often at most are backends asked for one request when some of them are asked again."""
TRIES_MAX = 8
"""However many backends there are."""
AGAIN = frozenset({Fault.UNREACHABLE, Fault.STATUS, Fault.BUSY})
"""Faults that are often over in a moment: the same backend may be asked again."""
AGAIN_PAUSE_S = 0.1
"""Before the first time; the pause doubles, and is up to half shorter or longer by chance."""
WAIT_SHARE_MAX = 0.5
"""The part of a model's time-out that a request may spend in line."""
TIMEOUT_SHARE_MIN = 0.5
"""A try that had less than this part of the model's time-out, and ran out of it, says nothing about its backend."""
LATE_SLACK_S = 0.05
"""So much before its end a time-out may be told, as timers are rounded."""
BOUNDED_TOKENS_MAX = 256
BOUNDED_CHARACTERS_MAX = 1_000
"""A request with no longer a prompt, for no more tokens, is short of itself: its time-out is its backend's doing."""

log = structlog.get_logger()


class PoolReply(Struct, frozen=True):
    """A reply, how many backends were asked for it, and the name of the one that gave it."""

    reply: Reply
    tries: int
    backend: str


class PoolError(Exception):
    """No backend gave a valid reply in time, after `tries` of them were asked.

    `fault` is that of the last try, None where there was none. `is_late`: the model's time-out passed at a backend.
    """

    def __init__(self, tries: int, fault: Fault | None = None, *, is_late: bool = False) -> None:
        super().__init__(f"no valid reply after {tries} tries")
        self.tries = tries
        self.fault = fault
        self.is_late = is_late

    @property
    def is_ours(self) -> bool:
        """Whether it was this process that could not ask, and no backend that did not answer."""
        return self.fault is not None and self.fault.remedy is Remedy.OURS


class Tries:
    """How many backends have been asked for one request, for who looks while it runs, or after it was cut short."""

    number = 0


class Pool:
    """The backends of one model.

    `jitter` gives numbers from 0 to 1. `on_change` is called when the health of one of them changes.
    """

    def __init__(
        self,
        model_id: str,
        backends: Sequence[tuple[Backend, Place]],
        *,
        timeout_s: float,
        max_output_tokens: int | None = None,
        takes_format: bool = False,
        jitter: Callable[[], float] = random.random,
        on_change: Callable[[], None] = unheard,
    ) -> None:
        self._on_change = on_change
        made = [
            Member(backend, place, jitter, partial(self._health_changed, number))
            for number, (backend, place) in enumerate(backends)
        ]
        self._told = [(member, HealthState.READY) for member in made]
        self.members = Members(made)
        self._model_id = model_id
        self._turns = Turns(self.members)
        self._timeout_s = timeout_s
        self._max_output_tokens = max_output_tokens
        self.takes_format = takes_format
        self._jitter = jitter
        self._tries_max = min(max(len(self.members), AGAIN_TRIES_MAX), TRIES_MAX)

    def __repr__(self) -> str:
        in_flight = sum(member.in_flight for member in self.members)
        waiting = self._turns.waiting
        return f"<Pool {self._model_id}, {len(self.members)} backends, {in_flight} in flight, {waiting} waiting>"

    @property
    def available(self) -> bool:
        """Tell whether there is a backend that may be well: False while all are tripped and rest, and without any."""
        now_s = asyncio.get_running_loop().time()
        return any(
            member.health.state is not HealthState.TRIPPED or not member.health.is_resting(now_s)
            for member in self.members
        )

    def rests(self, now_s: float) -> list[tuple[str, Rest]]:
        """List the backends that rest now, by name."""
        found = ((member.backend.name, member.health.rest(now_s)) for member in self.members)
        return [(name, rest) for name, rest in found if rest is not None]

    async def ask(self, request: ChatRequest, account_id: str | None = None, asked: Tries | None = None) -> PoolReply:
        """Get a reply from the first backend that has one, all within the model's time-out.

        `account_id` is whose request it is, for the log and the health of the backends. The tries are
        counted in `asked` too.

        Raises:
            PoolError: all have failed, the request is one that none would answer, or the time is over.
        """
        loop = asyncio.get_running_loop()
        begin_s = loop.time()
        deadline_s = begin_s + self._timeout_s
        wait_until_s = begin_s + self._timeout_s * WAIT_SHARE_MAX
        request = capped(request, self._max_output_tokens)
        if request.settings.response_format is not None and not self.takes_format:
            request = without_format(request)
        failed: dict[Member, BackendError] = {}
        asked = asked or Tries()
        fault: Fault | None = None
        rounds = 0
        while asked.number < self._tries_max:
            try:
                turn = await self._turns.take(failed, wait_until_s, account_id)
            except NobodyError:
                pause_s = AGAIN_PAUSE_S * 2**rounds * (0.5 + self._jitter())
                if not (again := _may_be_asked_again(failed, wait_until_s)) or loop.time() + pause_s >= deadline_s:
                    break
                rounds += 1
                await asyncio.sleep(pause_s)
                for member in again:
                    del failed[member]
                continue
            with turn:
                left_s = deadline_s - loop.time()
                if left_s <= 0:
                    break
                asked.number += 1
                try:
                    reply = await self._try(turn, request, left_s, account_id)
                    return PoolReply(reply, asked.number, turn.member.backend.name)
                except BackendError as error:
                    took_s = loop.time() - deadline_s + left_s
                    self._tell(error, turn.member, account_id, tries=asked.number, took_s=took_s)
                    fault = error.fault
                    asked.number -= fault.remedy is Remedy.OURS
                    if fault.remedy in {Remedy.GIVE_UP, Remedy.OURS}:
                        break
                    failed[turn.member] = error
        is_late = fault is Fault.TIMEOUT and loop.time() >= deadline_s - LATE_SLACK_S
        raise PoolError(asked.number, fault, is_late=is_late)

    async def _try(self, turn: Turn, request: ChatRequest, left_s: float, account_id: str | None) -> Reply:
        backend, limit_s = turn.member.backend, turn.member.place.timeout_s
        timeout_s = left_s if limit_s is None else min(left_s, limit_s)
        try:
            reply = await backend.ask(request, timeout_s=timeout_s)
        except BackendError as error:
            had_time = timeout_s >= min(limit_s or self._timeout_s, self._timeout_s) * TIMEOUT_SHARE_MIN
            if error.fault is not Fault.TIMEOUT or had_time:
                by = None if _is_bounded(request) else account_id
                turn.failed(error, asyncio.get_running_loop().time(), by=by)
            raise
        turn.succeeded()
        return reply

    def _tell(self, error: BackendError, member: Member, account_id: str | None, *, tries: int, took_s: float) -> None:
        log.warning(
            "backend_failed",
            model=self._model_id,
            backend=member.backend.name,
            fault=error.fault.word,
            detail=error.detail,
            account_id=account_id,
            tries=tries,
            duration_ms=round(took_s * MILLISECONDS_PER_SECOND),
        )

    def _health_changed(self, number: int) -> None:
        """Write into the log that a backend is trusted no more, or is again."""
        member, before = self._told[number]
        state = member.health.state
        names = {"model": self._model_id, "backend": member.backend.name}
        if state is HealthState.TRIPPED and before is not HealthState.TRIPPED:
            log.warning("backend_tripped", **names)
        elif state is HealthState.READY and before is HealthState.TRIPPED:
            log.info("backend_recovered", **names)
        self._told[number] = member, state
        self._on_change()


def _is_bounded(request: ChatRequest) -> bool:
    most = request.settings.max_tokens
    if most is None or most > BOUNDED_TOKENS_MAX:
        return False
    return sum(len(message.content) for message in request.messages) <= BOUNDED_CHARACTERS_MAX


def _may_be_asked_again(failed: Mapping[Member, BackendError], until_s: float) -> list[Member]:
    """List those whose fault may be over soon, who are still trusted, and whose rest ends in time."""
    return [
        member
        for member, error in failed.items()
        if error.fault in AGAIN
        and member.health.state is not HealthState.TRIPPED
        and member.health.rests_until_s <= until_s
    ]
