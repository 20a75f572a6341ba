"""The audit of the books, as an operator asks for it."""

from sqlalchemy import Engine

from tarazu.domain.calendar import Clock
from tarazu.store.audit import AuditReport, audit
from tarazu.store.engine import transaction
from tarazu.store.ledger import SWEEP_INTERVAL_S


def audit_books(engine: Engine, clock: Clock) -> AuditReport:
    """Compare every figure with its rows, on one state of the books.

    Raises:
        BooksUnavailableError: the books cannot be read.
    """
    with transaction(engine, read_only=True) as connection:
        return audit(connection, overdue_before_ms=clock() - SWEEP_INTERVAL_S * 1_000)
