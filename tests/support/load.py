"""Clients that ask without pause, over several keys and accounts, and note every reply that is delivered."""

import asyncio
import http.client
import threading
from collections import Counter
from collections.abc import Sequence
from random import Random
from types import TracebackType
from typing import Self

from tarazu.service.auditing import audit_books
from tests.support.answers import look
from tests.support.at_once import wait_until
from tests.support.backend import Exchange, ScriptedBackend, completion
from tests.support.patience import PATIENCE_S
from tests.support.processes import pass_deadlines
from tests.support.service import Customer, RunningService

CLIENTS = 6
PAUSE_S = 0.02
"""Between two tries of a client that is not served."""
SLOW_S = 0.05
PROMPTS = ("Hello", "Hello", "Hello", "slow", "fail")
MODELS = ("test/one", "test/one", "test/two", "test/free")


async def mixed(exchange: Exchange) -> None:
    """Answer as the prompt says: at once, slowly, or with an error."""
    prompt = exchange.received.body["messages"][-1]["content"]
    if prompt == "fail":
        await exchange.send(500, b"no")
        return
    if prompt == "slow":
        await asyncio.sleep(SLOW_S)
    await exchange.send(200, completion())


def customers(service: RunningService) -> list[Customer]:
    """Open three accounts: on a plan with two keys, on a plan that soon gives way to the balance, on balance alone."""
    planned = service.customer("large")
    return [
        planned,
        service.another_key(planned),
        service.customer("basic", balance=10**6),
        service.customer(None, balance=10**6),
    ]


class Load:
    """The clients. `delivered` are the ids of the replies, `cut` counts requests without any answer.

    What was counted stays over several runs, so that the books can be compared with all of it. `asked` are the services
    that share the load, on the same books; the first looks into them.
    """

    def __init__(self, service: RunningService, backend: ScriptedBackend, random: Random) -> None:
        self.delivered: list[str] = []
        self.cut = 0
        self.statuses: Counter[int] = Counter()
        self.asked = [service]
        self._random = random
        self._customers = customers(service)
        self._lock = threading.Lock()
        self._grown = threading.Condition(self._lock)
        self._threads: Sequence[threading.Thread] = ()
        backend.behaviour = mixed

    def __enter__(self) -> Self:
        self._stop = threading.Event()
        seeds = [self._random.random() for _ in range(CLIENTS)]
        self._threads = [threading.Thread(target=self._ask, args=(Random(seed),), name="client") for seed in seeds]  # noqa: S311 - a load to be replayed
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def wait_for_replies(self, number: int, *, timeout_s: float = 20) -> None:
        """Wait until so many more replies have been delivered."""
        with self._grown:
            until = len(self.delivered) + number
            assert self._grown.wait_for(lambda: len(self.delivered) >= until, timeout_s), self.statuses

    def assert_books_exact(self, *, charged_unseen: int) -> None:
        """After the deadlines nothing is held, every delivered reply is charged once, and the books balance.

        `charged_unseen` is how many charges there may be at most whose reply was not delivered. Call it when no client
        asks.
        """
        self.wait_for_sweep()
        delivered = set(self.delivered)
        assert len(delivered) == len(self.delivered), "an id was given twice"
        charged = [id_ for (id_,) in look(self.asked[0], "SELECT id FROM requests WHERE state = 'charged'")]
        assert len(charged) == len(set(charged)), "an id is charged twice"
        assert delivered - set(charged) == set(), "a reply was delivered and is not charged"
        assert len(set(charged) - delivered) <= charged_unseen, (sorted(set(charged) - delivered), self.statuses)
        assert look(self.asked[0], "SELECT sum(requests) FROM daily_usage") == [(len(charged),)]
        assert audit_books(self.asked[0].engine, self.asked[0].clock).differences == ()

    def wait_for_sweep(self) -> None:
        """Let all deadlines pass, and wait until nothing is held any more. Call it when no client asks."""
        wait_until(self._nothing_is_held, timeout_s=PATIENCE_S)

    def _nothing_is_held(self) -> bool:
        # Again each time: the database may still have been committing for a process that is no more.
        pass_deadlines(self.asked[0])
        return look(self.asked[0], "SELECT 1 FROM requests WHERE state = 'held'") == []

    def _ask(self, random: Random) -> None:
        while not self._stop.is_set():
            customer = random.choice(self._customers)
            model, prompt = random.choice(MODELS), random.choice(PROMPTS)
            try:
                answer = random.choice(self.asked).chat(customer, prompt, model=model)
                id_ = answer.json["id"] if answer.status == http.client.OK else None
            except (OSError, http.client.HTTPException):
                with self._lock:
                    self.cut += 1
                self._stop.wait(PAUSE_S)
                continue
            with self._grown:
                self.statuses[answer.status] += 1
                if id_ is not None:
                    self.delivered.append(id_)
                    self._grown.notify_all()
            if answer.status == http.client.SERVICE_UNAVAILABLE:
                self._stop.wait(PAUSE_S)
