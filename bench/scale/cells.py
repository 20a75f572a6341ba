"""What is measured: each thing that can grow, alone."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

SQLITE, POSTGRESQL = STORES = ("SQLite", "PostgreSQL")
GROUPS = ("workers", "shares", "accounts", "books")
CONNECTIONS = 64
SHARE = 0.25
"""Of a core, for each worker of the group `shares`: four of them and their PostgreSQL leave two cores time to spare."""
FEW, MANY = 1_000, 100_000
"""Accounts of the group `shares`: batches of two workers nearly always have one in common, and hardly ever."""
BOOKS_ACCOUNTS = 10_000


class Cell(Struct, frozen=True, kw_only=True):
    """So many services of so many workers on books of this size, asked by so many accounts.

    `share` is the part of a core that each worker may use; with None it uses what it gets.
    """

    store: str
    workers: int = 1
    services: int = 1
    accounts: int = 1
    requests: int = 0
    share: float | None = None

    def __str__(self) -> str:
        share = "" if self.share is None else f" of {self.share:g} core each"
        return (
            f"{self.store}, {self.services} x {self.workers} workers{share}, "
            f"{self.accounts:,} accounts, {self.requests:,} requests in the books"
        )

    @property
    def all_workers(self) -> int:
        """The workers of all services."""
        return self.workers * self.services

    @property
    def connections(self) -> int:
        """All that are open at once: as many for any number of workers, or, where each has its share, for each."""
        return CONNECTIONS if self.share is None else CONNECTIONS * self.all_workers


class Sizes(Struct, frozen=True):
    """How far accounts and books grow, how long each cell takes, and the accounts of the group `shares`."""

    accounts: Sequence[int] = (100, 100_000)
    requests: Sequence[int] = (0, 1_000_000, 10_000_000)
    shared_accounts: Sequence[int] = (1, FEW, MANY)
    seconds: int = 8


QUICK = Sizes(accounts=(100, 1_000), requests=(0, 10_000, 100_000), shared_accounts=(1, FEW), seconds=2)


def cells(stores: Sequence[str], groups: Sequence[str], sizes: Sizes) -> list[Cell]:
    """List them, each once, each group from its smallest on."""
    found = (cell for store in stores for group in groups for cell in _group(store, group, sizes))
    return list(dict.fromkeys(found))


def _group(store: str, group: str, sizes: Sizes) -> Iterator[Cell]:
    match group:
        case "workers":
            yield from _together(store, accounts=1, share=None)
        case "shares" if store == POSTGRESQL:
            for accounts in sizes.shared_accounts:
                yield from _together(store, accounts=accounts, share=SHARE)
        case "accounts":
            for accounts in (1, *sizes.accounts):
                yield Cell(store=store, accounts=accounts)
        case "books":
            for requests in sizes.requests:
                yield Cell(store=store, accounts=BOOKS_ACCOUNTS, requests=requests)


def _together(store: str, *, accounts: int, share: float | None) -> Iterator[Cell]:
    for workers in (1, 2, 4):
        yield Cell(store=store, workers=workers, accounts=accounts, share=share)
    if store == POSTGRESQL:
        yield Cell(store=store, services=2, accounts=accounts, share=share)
