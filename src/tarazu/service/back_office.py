"""What people and their programs look at and do beside completions: on threads and connections of its own.

A page that reads many rows, or an act that waits for a lock, delays no admission. Holders, operators and programs have
offices of their own, and each office has a room for those who are known and one for strangers: whatever one kind asks
for, the others find room to wait. In a room each who asks has a line.
"""

from collections import OrderedDict
from collections.abc import Callable
from contextvars import ContextVar
from hashlib import sha256
from typing import TypeVar

from msgspec import Struct
from sqlalchemy import Connection, Engine

from tarazu.domain.addresses import place_of
from tarazu.domain.calendar import Clock
from tarazu.domain.catalogue import Catalogue
from tarazu.service.fair_thread import FairThread
from tarazu.service.provisioning import Provisioning
from tarazu.store.availability import BooksUnavailableError
from tarazu.store.engine import transaction
from tarazu.store.trail import Via

WAITING_MAX, OF_KNOWN_MAX = 256, 64
"""Calls that wait in an office for those who are known, and for one of them; one more is refused."""
STRANGERS_WAITING_MAX, OF_STRANGER_MAX = 128, 64
"""The same for strangers, by their addresses."""
STRANGERS_IPV6_BITS = 48
"""What one site has of IPv6 is one stranger."""
MET_MAX = 10_000
"""Secrets of people and programs that an office remembers to have let in."""

T = TypeVar("T")


class BackOfficeFullError(BooksUnavailableError):
    """More wait than the back office may hold; nothing was done."""


class Asker(Struct, frozen=True):
    """Who asks: an id of a person or a program, or where somebody comes from who is not known yet."""

    line: str
    is_known: bool = True


THE_SERVICE = Asker("the service")
current_asker: ContextVar[Asker] = ContextVar("current_asker", default=THE_SERVICE)
"""Who asks in this request."""


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
        self._met: OrderedDict[bytes, Asker] = OrderedDict()
        self._thread: FairThread = (
            FairThread("back-office", stopped=BooksUnavailableError) if beside is None else beside._thread  # noqa: SLF001 - it is its like
        )
        self._known = self._thread.room("known", waiting_max=WAITING_MAX, of_line_max=OF_KNOWN_MAX, full=_full)
        self._strangers = self._thread.room(
            "strangers", waiting_max=STRANGERS_WAITING_MAX, of_line_max=OF_STRANGER_MAX, full=_full
        )

    def meet(self, secret: str, address: str) -> None:
        """Note who asks from now on in this request: whoever shows a secret that was let in before waits as one known.

        All secrets of a person have one line; one that was refused since is a stranger's again. Nobody is let in by
        that, which the books alone decide; it is about lines.
        """
        stranger = Asker(place_of(address, ipv6_bits=STRANGERS_IPV6_BITS), is_known=False)
        current_asker.set(self._met.get(_digest_of(secret), stranger))

    def note(self, secret: str, id_: str | None) -> None:
        """Note whose the secret is, by the id of a person or a program; None: nobody's, or no more."""
        digest = _digest_of(secret)
        if id_ is None:
            self._met.pop(digest, None)
            return
        asker = self._met[digest] = Asker(id_)
        self._met.move_to_end(digest)
        if len(self._met) > MET_MAX:
            self._met.popitem(last=False)
        current_asker.set(asker)

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
        asker = current_asker.get()
        room = self._known if asker.is_known else self._strangers
        return await room.run(asker.line, call)


def _digest_of(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()


def _full() -> BackOfficeFullError:
    return BackOfficeFullError("Too many calls are waiting for the back office.")
