"""One simulated process of the service: its clock, its queue, its ledger, and the holds that it owes an ending to."""

from collections.abc import Callable
from typing import Any

from tarazu.domain.catalogue import Catalogue
from tarazu.domain.credits import Hold, RequestState
from tarazu.store.availability import BooksUnavailableError
from tarazu.store.ledger import Ledger
from tests.simulation.faults import Death, Fault, FaultyEngine
from tests.simulation.told import Sending, Transaction, Waiting


class Process:
    """It dies and is started again; what it had in memory is then gone."""

    def __init__(self, name: str, faulty: FaultyEngine, clock: Callable[[], int], catalogue: Catalogue) -> None:
        self.name = name
        self.skew_ms = 0
        self.is_alive = True
        self.queue: list[Waiting] = []
        self.owed: dict[str, Sending] = {}
        self._faulty = faulty
        self._clock = clock
        # Its thread is never started: what it would do is done by `run`, when the world says so.
        self._ledger = Ledger(faulty.engine, catalogue, self.now_ms)

    def now_ms(self) -> int:
        """Tell the time by its own clock."""
        return self._clock() + self.skew_ms

    @property
    def catalogue(self) -> Catalogue:
        """Tell what it sells."""
        return self._ledger.catalogue

    def reload(self, catalogue: Catalogue) -> None:
        """Sell something else from the next batch on."""
        self._ledger.catalogue = catalogue

    def die(self) -> None:
        """Forget everything."""
        self.is_alive = False
        self.queue.clear()
        self.owed.clear()

    def owe(self, sending: Sending, hold: Hold | None = None) -> None:
        """Take note that its hold must be ended, which it has been told just now, or before."""
        sending.hold = hold or sending.hold
        self.owed[sending.id] = sending

    def end(self, sending: Sending, state: RequestState) -> None:
        """Ask for the end of a hold."""
        self.owed.pop(sending.id, None)
        self.queue.append(Waiting(sending.end(state), sending))

    def run(self, waiting: list[Waiting], fault: Fault | None) -> tuple[Transaction, bool]:
        """Run what waits as one transaction of the ledger; tell also whether it was committed."""
        answers: list[Any] | None = None
        now_ms = self.now_ms()
        try:
            with self._faulty.suffering(fault):
                answers = self._ledger._transact([each.operation for each in waiting])
        except BooksUnavailableError:
            assert fault is not None, "the books are unavailable, and nothing is wrong with them"
        except Death:
            self.die()
        transaction = Transaction(waiting=waiting, answers=answers, now_ms=now_ms, catalogue=self.catalogue)
        return transaction, self._faulty.committed
