"""What people and their programs look at and do beside completions: on threads and connections of its own.

A page that reads many rows, or an act that waits for a lock, delays no admission. Holders, operators and programs have
offices of their own: whatever one kind asks for, the others find room to wait, and holders delay neither of them. In an
office each who asks has a line: whatever one asks for, each other waits for one call of it at most.
"""

from collections.abc import Callable
from contextvars import ContextVar
from typing import TypeVar

from sqlalchemy import Connection, Engine

from tarazu.domain.calendar import Clock
from tarazu.domain.catalogue import Catalogue
from tarazu.service.fair_thread import FairThread
from tarazu.service.provisioning import Provisioning
from tarazu.store.availability import BooksUnavailableError
from tarazu.store.engine import transaction
from tarazu.store.trail import Via

CALLS_MAX = 256
"""Running and waiting in one office; one more is refused."""
WAITING_MAX = 32
"""Of one who asks; one more is refused."""

current_asker: ContextVar[str] = ContextVar("current_asker", default="the service")
"""Who asks: an id of a person or a program, or the address of one who is not known yet."""

T = TypeVar("T")


class BackOfficeFullError(BooksUnavailableError):
    """More wait than the back office may hold; nothing was done."""


class BackOffice:
    """Works for one process. `catalogue` may be replaced at any time: an act goes by the one that it finds.

    An office `beside` another works on its thread, which is also its connection to the books.
    """

    def __init__(
        self, engine: Engine, catalogue: Catalogue, clock: Clock, *, beside: "BackOffice | None" = None
    ) -> None:
        self.catalogue = catalogue
        self.clock = clock
        self._engine = engine
        self._calls = 0
        self._thread: FairThread[str] = (
            FairThread("back-office", WAITING_MAX, full=_full, stopped=BooksUnavailableError)
            if beside is None
            else beside._thread  # noqa: SLF001 - it is its like
        )

    async def look(self, look: Callable[[Connection], T]) -> T:
        """Read the books: `look(connection)` in a transaction that sees one state of them.

        Raises:
            BooksUnavailableError: they cannot be read, or too many wait.
        """

        def run() -> T:
            with transaction(self._engine, read_only=True) as connection:
                return look(connection)

        return await self._run(run)

    async def change(self, change: Callable[[Connection], T]) -> T:
        """Change the books by `change(connection)`, in one transaction.

        Raises:
            BooksUnavailableError: they cannot be written to, or too many wait.
        """

        def run() -> T:
            with transaction(self._engine) as connection:
                return change(connection)

        return await self._run(run)

    async def act(self, act: Callable[[Provisioning], T], *, by: str, via: Via) -> T:
        """Do what operators and account holders do, in the name of `by`.

        Raises:
            ProvisioningError: it cannot be done.
            BooksUnavailableError: the books cannot be used, or too many wait.
        """
        provisioning = Provisioning(self._engine, self.catalogue, self.clock, by=by, via=via)
        return await self._run(lambda: act(provisioning))

    def close(self) -> None:
        """Begin nothing more; what runs ends."""
        self._thread.close()

    async def _run(self, call: Callable[[], T]) -> T:
        if self._calls >= CALLS_MAX:
            raise _full()
        self._calls += 1
        try:
            return await self._thread.run(current_asker.get(), call)
        finally:
            self._calls -= 1


def _full() -> BackOfficeFullError:
    return BackOfficeFullError("Too many calls are waiting for the back office.")
