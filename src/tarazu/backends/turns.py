"""Turns at the backends of a pool: taken at once where one is free, waited for in line where none is."""

import asyncio
from collections.abc import Collection
from types import TracebackType
from typing import Self

from tarazu.backends.health import HealthState
from tarazu.backends.members import Member, Members, NoPick
from tarazu.backends.port import BackendError


class NobodyError(Exception):
    """There is no backend that has not been asked, or none was free in time."""


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

    def failed(self, error: BackendError, now_s: float) -> None:
        """Take note of a failed try."""
        self.member.health.failed(error, self._began_at_s, now_s, is_trial=self._is_trial)

    def end(self) -> None:
        """Give the place to the next in line. A trial that was cut short has told nothing: the next request tries."""
        self.member.in_flight -= 1
        self.member.trials -= self._is_trial
        self._turns.hand_out()


class _Waiter:
    def __init__(self, asked: Collection[Member], future: "asyncio.Future[Turn]") -> None:
        self.asked = asked
        self.future = future


class Turns:
    """Gives out turns, in the order in which they were asked for."""

    def __init__(self, members: Members) -> None:
        self._members = members
        self._line: dict[_Waiter, None] = {}
        self._alarm: asyncio.TimerHandle | None = None

    def __repr__(self) -> str:
        return f"<Turns, {self.waiting} waiting>"

    @property
    def waiting(self) -> int:
        """How many stand in line."""
        return len(self._line)

    async def take(self, asked: Collection[Member], until_s: float) -> Turn:
        """Take a turn at a backend that is not among `asked`; wait for one in line, at most until `until_s`.

        Raises:
            NobodyError: there is none, or none in time.
        """
        loop = asyncio.get_running_loop()
        picked = self._members.pick(asked, loop.time()) if not self._line else NoPick.WAIT
        if isinstance(picked, Member):
            return Turn(picked, self, now_s=loop.time())
        if picked is NoPick.NOBODY:
            raise NobodyError
        waiter = _Waiter(asked, loop.create_future())
        self._line[waiter] = None
        self.hand_out()
        try:
            async with asyncio.timeout_at(until_s):
                return await waiter.future
        except BaseException as error:
            self._leave(waiter)
            if isinstance(error, TimeoutError):
                raise NobodyError from None
            raise

    def hand_out(self) -> None:
        """Give turns to those who wait, first come first served, as far as there are any."""
        if not self._line:
            return
        loop = asyncio.get_running_loop()
        for waiter in list(self._line):
            picked = self._members.pick(waiter.asked, loop.time())
            if picked is NoPick.WAIT:
                if not waiter.asked:
                    break  # whoever may ask anybody waits: so must all behind
                continue
            del self._line[waiter]
            if waiter.future.done():  # it has just gone away
                continue
            if isinstance(picked, Member):
                waiter.future.set_result(Turn(picked, self, now_s=loop.time()))
            else:
                waiter.future.set_exception(NobodyError())
        self._wake_when_a_rest_ends(loop)

    def _leave(self, waiter: _Waiter) -> None:
        """Leave the line. A turn that was handed over in the same moment goes to the next."""
        self._line.pop(waiter, None)
        future = waiter.future
        if future.done() and not future.cancelled() and future.exception() is None:
            future.result().end()

    def _wake_when_a_rest_ends(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        end_s = self._members.next_rest_end_s(loop.time())
        if self._line and end_s is not None:
            self._alarm = loop.call_at(end_s, self.hand_out)
