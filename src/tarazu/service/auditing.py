"""The audit of the books, as an operator asks for it."""

import asyncio
import threading
from concurrent.futures import Future

from sqlalchemy import Engine

from tarazu.domain.calendar import Clock
from tarazu.store.audit import AuditReport, audit
from tarazu.store.ledger import SWEEP_INTERVAL_S
from tarazu.store.telling import Tell, tell_nobody


class AuditRunningError(Exception):
    """An audit of this process has not ended yet."""


class Auditor:
    """Audits the books beside the service: one at a time in a process, on a thread and a connection of its own."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        self._engine = engine
        self._clock = clock
        self._running = threading.Lock()

    def __repr__(self) -> str:
        return f"<Auditor {'running' if self._running.locked() else 'idle'}>"

    async def run(self) -> AuditReport:
        """Audit the books. It goes on, and is in the way of others, also when whoever asked has left.

        Raises:
            AuditRunningError: one is running already.
            BooksUnavailableError: the books cannot be read.
        """
        if not self._running.acquire(blocking=False):
            raise AuditRunningError
        answer: Future[AuditReport] = Future()
        # A daemon: an audit of large books must not delay the end of the process, and is none the worse for it.
        try:
            threading.Thread(target=self._run, args=(answer,), name="audit", daemon=True).start()
        except RuntimeError:  # no room for one more thread
            self._running.release()
            raise
        return await asyncio.wrap_future(answer)

    def _run(self, answer: Future[AuditReport]) -> None:
        try:
            report = audit_books(self._engine, self._clock)
        except Exception as error:  # noqa: BLE001 - here the work of a thread begins; whoever asked is told
            self._end(answer).set_exception(error)
        else:
            self._end(answer).set_result(report)

    def _end(self, answer: Future[AuditReport]) -> Future[AuditReport]:
        """Let the next one begin before anybody knows that this one has ended; nobody may wait for it any more."""
        self._running.release()
        return answer if answer.set_running_or_notify_cancel() else Future()


def audit_books(engine: Engine, clock: Clock, tell: Tell = tell_nobody) -> AuditReport:
    """Compare every figure with its rows, on one state of the books; `tell` hears what it is doing.

    Raises:
        BooksUnavailableError: the books cannot be read.
    """
    return audit(engine, overdue_before_ms=clock() - SWEEP_INTERVAL_S * 1_000, tell=tell)
