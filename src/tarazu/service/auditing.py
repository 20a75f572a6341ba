"""The audit of the books, as an operator asks for it."""

from sqlalchemy import Engine

from tarazu.domain.calendar import Clock
from tarazu.store.audit import AuditReport, audit
from tarazu.store.ledger import SWEEP_INTERVAL_S
from tarazu.store.telling import Tell, tell_nobody


def audit_books(engine: Engine, clock: Clock, tell: Tell = tell_nobody) -> AuditReport:
    """Compare every figure with its rows, on one state of the books; `tell` hears what it is doing.

    Raises:
        BooksUnavailableError: the books cannot be read.
    """
    return audit(engine, overdue_before_ms=clock() - SWEEP_INTERVAL_S * 1_000, tell=tell)
