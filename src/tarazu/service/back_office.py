"""What people and their programs look at and do beside completions: on threads and connections of its own.

A page that reads many rows, or an act that waits for a lock, delays no admission. Holders, operators and programs have
offices of their own: whatever one kind asks for, the others find room to wait, and holders delay nobody but each other.
"""

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection, Engine

from tarazu.domain.calendar import Clock
from tarazu.domain.catalogue import Catalogue
from tarazu.service.bounded_threads import STOPPING, BoundedThreads
from tarazu.service.provisioning import Provisioning
from tarazu.store.availability import BooksUnavailableError
from tarazu.store.engine import transaction
from tarazu.store.trail import Via

THREADS = 1
"""Of an office. As many of a process's connections to the books are used by it at most."""
CALLS_MAX = 64
"""Running and waiting in one office; one more is refused."""

T = TypeVar("T")


class BackOfficeFullError(BooksUnavailableError):
    """More wait than the back office may hold; nothing was done."""


class BackOffice:
    """Works for one process. `catalogue` may be replaced at any time: an act goes by the one that it finds.

    An office `beside` another works on its threads.
    """

    def __init__(
        self, engine: Engine, catalogue: Catalogue, clock: Clock, *, beside: "BackOffice | None" = None
    ) -> None:
        self.catalogue = catalogue
        self.clock = clock
        self._engine = engine
        self._threads: BoundedThreads = BoundedThreads(
            "back-office",
            THREADS,
            CALLS_MAX,
            full=lambda: BackOfficeFullError(f"More than {CALLS_MAX} calls are waiting for the back office."),
            stopped=lambda: BooksUnavailableError(STOPPING),
            beside=None if beside is None else beside._threads,  # noqa: SLF001 - it is its like
        )

    async def look(self, look: Callable[[Connection], T]) -> T:
        """Read the books: `look(connection)` in a transaction that sees one state of them.

        Raises:
            BooksUnavailableError: they cannot be read, or too many wait.
        """

        def run() -> T:
            with transaction(self._engine, read_only=True) as connection:
                return look(connection)

        return await self._threads.run(run)

    async def change(self, change: Callable[[Connection], T]) -> T:
        """Change the books by `change(connection)`, in one transaction.

        Raises:
            BooksUnavailableError: they cannot be written to, or too many wait.
        """

        def run() -> T:
            with transaction(self._engine) as connection:
                return change(connection)

        return await self._threads.run(run)

    async def act(self, act: Callable[[Provisioning], T], *, by: str, via: Via) -> T:
        """Do what operators and account holders do, in the name of `by`.

        Raises:
            ProvisioningError: it cannot be done.
            BooksUnavailableError: the books cannot be used, or too many wait.
        """
        provisioning = Provisioning(self._engine, self.catalogue, self.clock, by=by, via=via)
        return await self._threads.run(lambda: act(provisioning))

    def close(self) -> None:
        """Begin nothing more; what runs ends."""
        self._threads.close()
