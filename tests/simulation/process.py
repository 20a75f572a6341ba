"""One simulated process of the service: its clock, its queue, its ledger, and the holds that it owes an ending to."""

from typing import Any

from tarazu.domain.calendar import Clock
from tarazu.domain.catalogue import Catalogue
from tarazu.domain.credits import Hold, Reason, RequestState
from tarazu.store.availability import BooksUnavailableError
from tarazu.store.ledger import Ledger
from tests.simulation.faults import Death, Fault, FaultyEngine
from tests.simulation.told import Sending, Transaction, Waiting


class _Ledger(Ledger):
    """A ledger whose thread is never started: what it would do is done by `Process.run`, when the world says so."""

    def __init__(self, faulty: FaultyEngine, catalogue: Catalogue, clock: Clock) -> None:
        super().__init__(faulty.engine, catalogue, clock)
        self.to_release: list[Hold] = []

    def release(self, hold: Hold, *, tries: int, reason: Reason | None = None) -> None:  # noqa: ARG002 - as the real one has it
        """Keep the hold for the process's queue."""
        self.to_release.append(hold)


class Process:
    """It dies and is started again; what it had in memory is then gone."""

    def __init__(self, name: str, faulty: FaultyEngine, clock: Clock, catalogue: Catalogue) -> None:
        self.name = name
        self.skew_ms = 0
        self.is_alive = True
        self.queue: list[Waiting] = []
        self.owed: dict[str, Sending] = {}
        self._faulty = faulty
        self._clock = clock
        self._ledger = _Ledger(faulty, catalogue, self.now_ms)

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
        """Forget everything, and let go of the connection."""
        self._ledger._connection.close()
        self.is_alive = False
        self.queue.clear()
        self.owed.clear()

    def owe(self, sending: Sending, hold: Hold | None = None) -> None:
        """Take note that its hold must be ended, which it has been told just now, or before."""
        sending.hold = hold or sending.hold
        self.owed[sending.id] = sending

    def end(self, sending: Sending, state: RequestState, reason: Reason | None = None) -> None:
        """Ask for the end of a hold."""
        self.owed.pop(sending.id, None)
        self.queue.append(Waiting(sending.end(state, reason), sending))

    def run(self, waiting: list[Waiting], fault: Fault | None) -> tuple[Transaction, bool]:
        """Run what waits as one transaction of the ledger; tell also whether it was committed."""
        answers: list[Any] | None = None
        now_ms = self.now_ms()
        try:
            with self._faulty.suffering(fault):
                answers = self._ledger._transact([each.operation for each in waiting])
        except BooksUnavailableError:
            assert fault is not None, "the books are unavailable, and nothing is wrong with them"
            self._release_what_is_in_doubt(waiting)
        except Death:
            self.die()
        self._ledger.to_release.clear()
        transaction = Transaction(waiting=waiting, answers=answers, now_ms=now_ms, catalogue=self.catalogue)
        return transaction, self._faulty.committed

    def _release_what_is_in_doubt(self, waiting: list[Waiting]) -> None:
        """Ask for the release of holds that the ledger does not know to be stored, as its own queue would have it."""
        sendings = {each.asker.id: each.asker for each in waiting if isinstance(each.asker, Sending)}
        for hold in self._ledger.to_release:
            sending = sendings[hold.request_id]
            sending.hold = hold
            self.queue.append(Waiting(sending.end(RequestState.RELEASED), sending))
