"""Turns at the backends of a pool: taken at once where one is free, waited for in line where none is."""

import asyncio
from collections import Counter
from collections.abc import Collection
from types import TracebackType
from typing import Self

from tarazu.backends.health import HealthState
from tarazu.backends.members import Member, Members, NoPick
from tarazu.backends.port import BackendError


class NobodyError(Exception):
    """There is no backend that has not been asked, or none is free in time."""


class Turn:
    """One request's place at one backend, until the `with` block ends."""

    def __init__(self, member: Member, turns: "Turns", *, now_s: float) -> None:
        self.member = member
        self._turns = turns
        self._began_at_s = now_s
        self._is_trial = member.health.state is HealthState.TRIPPED
        member.in_flight += 1
        member.trials += self._is_trial

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def succeeded(self) -> None:
        """Take note of a valid reply."""
        self.member.health.succeeded(self._began_at_s, is_trial=self._is_trial)

    def failed(self, error: BackendError, now_s: float, *, by: str | None = None) -> None:
        """Take note of a failed try; `by` is the caller in whose hands it was how long it would take."""
        self.member.health.failed(error, self._began_at_s, now_s, is_trial=self._is_trial, by=by)

    def end(self) -> None:
        """Give the place to the next in line. A trial that was cut short has told nothing: the next request tries."""
        self.member.in_flight -= 1
        self.member.trials -= self._is_trial
        self._turns.hand_out()


Line = dict["asyncio.Future[Turn]", float]
"""Those who wait, in their order, each with the instant until which it does."""
Asked = frozenset[Member]
"""The backends that have been asked in vain."""


class Turns:
    """Gives out turns, to the accounts one after the other, and to each in the order in which it has asked for them.

    So an account that asks for much delays another by one request. Of one account those who have asked the same
    backends in vain stand in one line: when its first must wait, so must they all, and all others that have asked the
    same. So what a turn costs does not grow with the number of those who wait. Of two lines of an account that is
    served whose first must leave sooner.
    """

    def __init__(self, members: Members) -> None:
        self._members = members
        self._lines: dict[str | None, dict[Asked, Line]] = {}
        """The lines of each account; the first account is the next to be served."""
        self._waiting: Counter[Asked] = Counter()
        """How many of all have asked the same."""
        self._alarm: asyncio.TimerHandle | None = None

    def __repr__(self) -> str:
        return f"<Turns, {self.waiting} waiting>"

    @property
    def waiting(self) -> int:
        """How many stand in line."""
        return self._waiting.total()

    async def take(self, asked: Collection[Member], until_s: float, account_id: str | None = None) -> Turn:
        """Take a turn at a backend that is not among `asked`; wait for one in line, at most until `until_s`.

        Raises:
            NobodyError: there is none, or none in time.
        """
        loop = asyncio.get_running_loop()
        asked = frozenset(asked)
        picked = NoPick.WAIT if asked in self._waiting else self._members.pick(asked, loop.time())
        if isinstance(picked, Member):
            return Turn(picked, self, now_s=loop.time())
        if picked is NoPick.NOBODY or self._members.all_rest_until(asked, until_s):
            raise NobodyError
        future: asyncio.Future[Turn] = loop.create_future()
        self._lines.setdefault(account_id, {}).setdefault(asked, {})[future] = until_s
        self._waiting[asked] += 1
        self._wake_when_a_rest_ends(loop)
        try:
            async with asyncio.timeout_at(until_s):
                return await future
        except BaseException as error:
            self._leave(account_id, asked, future)
            if isinstance(error, TimeoutError):
                raise NobodyError from None
            raise

    def hand_out(self) -> None:
        """Give turns to those who wait, as far as there are any."""
        if not self._waiting:
            return
        loop = asyncio.get_running_loop()
        must_wait: set[Asked] = set()
        while len(must_wait) < len(self._waiting) and self._hand_out_one(must_wait, loop):
            pass
        self._wake_when_a_rest_ends(loop)

    def _hand_out_one(self, must_wait: set[Asked], loop: asyncio.AbstractEventLoop) -> bool:
        """Give a turn to the first of the next account for whom there is one; tell whether there was any."""
        for account_id, lines in self._lines.items():
            for asked in sorted(lines.keys() - must_wait, key=lambda asked: next(iter(lines[asked].values()))):
                future = next(iter(lines[asked]))
                if not future.done():  # else it has just gone away
                    picked = self._members.pick(asked, loop.time())
                    if not isinstance(picked, Member):
                        must_wait.add(asked)
                        continue
                    future.set_result(Turn(picked, self, now_s=loop.time()))
                self._lines[account_id] = self._lines.pop(account_id)  # it stands behind the others now
                self._remove(account_id, asked, future)
                return True
        return False

    def _leave(self, account_id: str | None, asked: Asked, future: "asyncio.Future[Turn]") -> None:
        """Leave the line. A turn that was handed over in the same moment goes to the next."""
        self._remove(account_id, asked, future)
        if future.done() and not future.cancelled():
            future.result().end()

    def _remove(self, account_id: str | None, asked: Asked, future: "asyncio.Future[Turn]") -> None:
        lines = self._lines.get(account_id, {})
        line = lines.get(asked, {})
        if line.pop(future, None) is None:
            return
        if not line:
            del lines[asked]
        if not lines:
            del self._lines[account_id]
        self._waiting[asked] -= 1
        if not self._waiting[asked]:
            del self._waiting[asked]

    def _wake_when_a_rest_ends(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        end_s = self._members.next_rest_end_s(loop.time())
        if self._waiting and end_s is not None:
            self._alarm = loop.call_at(end_s, self.hand_out)
