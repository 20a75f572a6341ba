"""What goes wrong with one transaction: at a statement of it, or around its commit."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from enum import Enum
from typing import Any

from msgspec import Struct
from sqlalchemy import Engine

from tests.support.statements import before_each


class Death(BaseException):
    """The process dies here. No code of the product may catch it, and none gets to clean up."""


class Kind(Enum):
    """The ways in which it goes wrong, in the words of the trace."""

    DEATH = "dies before statement {}"
    DEATH_BEFORE_COMMIT = "dies before the commit"
    DEATH_AFTER_COMMIT = "dies after the commit, before the answers"
    DISK_FULL = "disk full at statement {}"
    COMMIT_FAILS = "the commit fails"
    COMMIT_IN_DOUBT = "commits, and is told that the commit failed"
    LOCKED = "the database is locked"


AT_STATEMENT = frozenset({Kind.DEATH, Kind.DISK_FULL})


class Fault(Struct, frozen=True):
    """One of them, at the statement with this number, or at the commit where the transaction has fewer."""

    kind: Kind
    statement: int = 0

    def __str__(self) -> str:
        return self.kind.value.format(self.statement)


class FaultyEngine:
    """Lets the transactions of an engine go wrong when told to, and tells whether the last one was committed.

    `after_commit` is called with the driver's connection when a commit has really happened. `locked` is how somebody
    else holds the write lock.
    """

    def __init__(
        self,
        engine: Engine,
        after_commit: Callable[[Any], None] = lambda _connection: None,
        locked: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self.engine = engine
        self.committed = False
        self._fault: Fault | None = None
        self._statements = 0
        self._after_commit = after_commit
        self._locked = locked
        self._do_commit = engine.dialect.do_commit
        before_each(engine.dialect, self._before_statement)
        engine.dialect.do_commit = self._commit  # type: ignore[method-assign,assignment] # there is no event after a commit

    @contextmanager
    def suffering(self, fault: Fault | None) -> Iterator[None]:
        """Let the transaction in the block go wrong so, or not."""
        self._fault = fault
        self._statements = 0
        self.committed = False
        try:
            with self._locked() if fault is not None and fault.kind is Kind.LOCKED else nullcontext():
                yield
        finally:
            self._fault = None

    def _before_statement(self, cursor: Any, *_statement: object) -> None:
        self._statements += 1
        if self._fault is not None and self._fault.kind in AT_STATEMENT and self._fault.statement == self._statements:
            self._strike(self._fault, cursor.connection)

    def _commit(self, connection: Any) -> None:
        fault, self._fault = self._fault, None
        if fault is not None and fault.kind in AT_STATEMENT | {Kind.DEATH_BEFORE_COMMIT, Kind.COMMIT_FAILS}:
            self._strike(fault, connection.dbapi_connection)
        self._do_commit(connection)
        self.committed = True
        self._after_commit(connection.dbapi_connection)
        if fault is not None:
            self._strike(fault, connection.dbapi_connection)

    def _strike(self, fault: Fault, connection: Any) -> None:
        self._fault = None
        if fault.kind in {Kind.DEATH, Kind.DEATH_BEFORE_COMMIT, Kind.DEATH_AFTER_COMMIT}:
            raise Death
        if fault.kind is Kind.DISK_FULL and self.engine.dialect.name == "sqlite":
            connection.rollback()  # as SQLite itself does: the whole transaction, its savepoints too
        raise self.engine.dialect.loaded_dbapi.OperationalError(str(fault))
