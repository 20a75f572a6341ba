"""The minute windows, counted from the answers: which row has how many places taken, in which minute.

A window turns forwards with the clock, and back when it is more than AHEAD_MAX ahead of it.
"""

from collections import Counter
from collections.abc import Iterator

from tarazu.domain.catalogue import Catalogue
from tarazu.store.operations import Admit
from tests.simulation.rows import AccountRow, KeyRow, Rows
from tests.simulation.told import Sending, Transaction
from tests.support.values import MINUTE_MS

AHEAD_MAX = 5
"""Minutes by which a window may be ahead of the clock and stay open."""


class Places:
    """Windows by the id of the account or key."""

    def __init__(self, rows: Rows) -> None:
        self._places = {row.id: (row.minute, row.taken) for row in _windows(rows)}
        self._seen = set(self._places.items())
        """What the windows have ever been."""

    def room(self, account: AccountRow, key: KeyRow, catalogue: Catalogue, minute: int) -> int:
        """Tell how many places are left in both windows."""
        plan = catalogue.plans.get(account.plan or "")
        limits = {account.id: (plan or catalogue.payg).requests_per_minute, key.id: key.limit_per_minute}
        return min(limit - self._taken(id_, minute) for id_, limit in limits.items() if limit is not None)

    def take(self, account: AccountRow, key: KeyRow, minute: int) -> None:
        """Take a place in both."""
        for id_ in (account.id, key.id):
            self._places[id_] = self._turned(id_, minute), self._taken(id_, minute) + 1

    def take_unknown(self, transaction: Transaction, rows: Rows) -> None:
        """Believe the rows after a transaction without answers: between none and all of its requests took a place."""
        asked: Counter[str] = Counter()
        for waiting in transaction.waiting:
            if isinstance(waiting.operation, Admit) and isinstance(waiting.asker, Sending):
                asked.update([waiting.asker.account_id, waiting.asker.asked.key.id])
        for row in _windows(rows):
            minute, taken = row.minute, row.taken
            if (minute, taken) != self._places[row.id]:
                now = minute_of(transaction.now_ms)
                assert minute == self._turned(row.id, now), f"{row}: another minute"
                assert taken <= self._taken(row.id, now) + asked[row.id], f"{row}: more places than requests"
                self._places[row.id] = minute, taken

    def lose_some(self, rows: Rows) -> None:
        """Believe the rows after a power cut: places may be lost, back to what a window has been before."""
        for row in _windows(rows):
            self._places[row.id] = row.minute, row.taken
            assert (row.id, self._places[row.id]) in self._seen, f"{row}: it has never been so before the power cut"

    def compare(self, rows: Rows) -> None:
        """Every row tells what was counted."""
        for row in _windows(rows):
            counted = self._places.setdefault(row.id, (0, 0))
            assert counted == (row.minute, row.taken), f"{row}: counted {counted}"
            self._seen.add((row.id, counted))

    def _turned(self, id_: str, minute: int) -> int:
        opened = self._places[id_][0]
        return opened if minute <= opened <= minute + AHEAD_MAX else minute

    def _taken(self, id_: str, minute: int) -> int:
        opened, taken = self._places[id_]
        return taken if opened == self._turned(id_, minute) else 0


def minute_of(now_ms: int) -> int:
    """Count the minutes since the epoch."""
    return now_ms // MINUTE_MS


def _windows(rows: Rows) -> Iterator[AccountRow | KeyRow]:
    yield from rows.accounts.values()
    yield from rows.keys.values()
