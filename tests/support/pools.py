"""Pools for tests: backends that do as they are told, in virtual time."""

import asyncio
from collections.abc import Sequence
from typing import Any

from tarazu.backends.members import Place
from tarazu.backends.pool import Pool
from tarazu.backends.port import BackendError, Fault, Reply
from tarazu.domain.prompt import ChatRequest, Message, Settings

TIMEOUT_S = 60.0
REQUEST = ChatRequest(model=None, messages=(Message("user", "Hello"),), settings=Settings())

Plan = BaseException | Fault | None
"""What a try comes to: an error, an error of this fault, or a reply that names the backend."""


class PlannedBackend:
    """A backend that does one plan after the other, the last one for ever, each after `takes_s`."""

    def __init__(self, name: str = "a", *plans: Plan, takes_s: float = 1.0) -> None:
        self.name = name
        self.plans = list(plans) or [None]
        self.takes_s = takes_s
        self.asked_at_s: list[float] = []
        self.given_s: list[float] = []
        """The time that each try was given."""
        self.in_flight = 0
        self.in_flight_max = 0
        self.cancelled = 0

    async def ask(self, request: ChatRequest, *, timeout_s: float) -> Reply:
        """Do what is planned, or run out of time."""
        assert request.messages == REQUEST.messages
        self.asked_at_s.append(asyncio.get_running_loop().time())
        self.given_s.append(timeout_s)
        self.in_flight += 1
        self.in_flight_max = max(self.in_flight_max, self.in_flight)
        plan = self.plans.pop(0) if len(self.plans) > 1 else self.plans[0]
        try:
            await asyncio.sleep(min(self.takes_s, timeout_s))
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.in_flight -= 1
        if self.takes_s > timeout_s:
            raise BackendError(Fault.TIMEOUT)
        if isinstance(plan, Fault):
            raise BackendError(plan)
        if plan is not None:
            raise plan
        return Reply(text=self.name)


def busy(retry_after_s: float | None = None) -> BackendError:
    """Make the failure of a backend that has no room."""
    return BackendError(Fault.BUSY, retry_after_s=retry_after_s)


def make_pool(*backends: PlannedBackend | tuple[PlannedBackend, Place], jitter: float = 0.5, **settings: Any) -> Pool:
    """Make a pool of a model with a time-out of a minute."""
    members = [backend if isinstance(backend, tuple) else (backend, Place()) for backend in backends]
    return Pool("small", members, **{"timeout_s": TIMEOUT_S, "jitter": lambda: jitter, **settings})


async def ask_times(pool: Pool, times: int) -> list[str]:
    """Ask one after the other; tell who answered each."""
    return [(await pool.ask(REQUEST)).reply.text for _ in range(times)]


async def ask_at_once(pool: Pool, times: int) -> Sequence[Any]:
    """Ask all at once; tell what each came to: who answered, or the exception."""
    outcomes = await asyncio.gather(*(pool.ask(REQUEST) for _ in range(times)), return_exceptions=True)
    return [outcome if isinstance(outcome, BaseException) else outcome.reply.text for outcome in outcomes]


def now_s() -> float:
    """Tell the loop's time."""
    return asyncio.get_running_loop().time()
