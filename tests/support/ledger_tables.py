"""The tables of the ledger's model, and its calendar: rows of Python in the order of the books' columns."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

ZONE_OFFSET = timedelta(hours=3, minutes=30)
"""The zone of the model, without summer time."""
WINDOW_AHEAD_MAX = 5
"""Minutes by which a window may lie ahead of the clock."""


@dataclass(kw_only=True)
class WindowRow:
    """Whoever has a minute window. It turns forwards, and back when it is far ahead."""

    minute: int = 0
    taken: int = 0

    def taken_in(self, minute: int) -> int:
        """Tell how many places are taken for a request of this minute."""
        return self.taken if self._is_open(minute) else 0

    def take_place(self, minute: int) -> None:
        """Take one."""
        taken = self.taken_in(minute) + 1
        self.minute, self.taken = self.minute if self._is_open(minute) else minute, taken

    def _is_open(self, minute: int) -> bool:
        return 0 <= self.minute - minute <= WINDOW_AHEAD_MAX


@dataclass(kw_only=True)
class AccountRow(WindowRow):
    """An account, with nothing used and no balance."""

    id: str
    plan: str | None
    status: str = "active"
    period: str
    used: int = 0
    balance: int = 0
    free_hour: int = 0
    free_in_hour: int = 0
    """Requests without a reply, by the caller's own doing, that were given back in that hour."""


@dataclass(kw_only=True)
class KeyRow(WindowRow):
    """A key with a limit of its own, or without."""

    id: str
    account: str
    limit: int | None
    is_revoked: bool = False


@dataclass
class RequestRow:
    """A request that was held."""

    id: str
    account: str
    key: str
    model: str
    credits: int
    source: str
    period: str
    day: str
    deadline_ms: int
    state: str = "held"


@dataclass
class KeptRow:
    """What was sent with an idempotency key."""

    request: str
    account: str
    key: str
    fingerprint: bytes
    created_ms: int
    reply: bytes | None = None


@dataclass
class Tables:
    """All rows, by their ids, and the prices, plans and limits that they are moved by."""

    prices: dict[str, int]
    plans: dict[str, tuple[int, int]]
    """Monthly credits and requests a minute of each plan."""
    payg_per_minute: int
    free_per_hour: int
    accounts: dict[str, AccountRow] = field(default_factory=dict)
    keys: dict[str, KeyRow] = field(default_factory=dict)
    requests: dict[str, RequestRow] = field(default_factory=dict)
    usage: dict[tuple[str, str, str, str], list[int]] = field(default_factory=dict)
    references: set[str] = field(default_factory=set)
    kept: dict[tuple[str, str], KeptRow] = field(default_factory=dict)
    """By account and idempotency key."""
    is_stopped: bool = False

    def add_usage(self, request: RequestRow, tokens: tuple[int, int]) -> None:
        """Add a charge to its day."""
        sums = self.usage.setdefault((request.account, request.day, request.key, request.model), [0, 0, 0, 0])
        sums[:] = map(sum, zip(sums, (1, request.credits, *tokens), strict=True))

    def turn_page(self, account: AccountRow, now_ms: int) -> None:
        """Turn to the month of the clock; what is used on that page is the sum of its requests."""
        period = day_of(now_ms)[:7]
        if account.period != period:
            account.period, account.used = (
                period,
                sum(
                    row.credits
                    for row in self.requests.values()
                    if (row.account, row.period, row.source) == (account.id, period, "plan")
                    and row.state in {"held", "charged"}
                ),
            )

    def held(self) -> list[str]:
        """List the requests that are held."""
        return sorted(row.id for row in self.requests.values() if row.state == "held")

    def blocked(self) -> list[str]:
        """List the accounts that are not active."""
        return sorted(row.id for row in self.accounts.values() if row.status != "active")


def reply_of(request_id: str) -> bytes:
    """Write the reply that a request is charged with."""
    return f"reply to {request_id}".encode()


def day_of(now_ms: int) -> str:
    """Tell the day in the zone of the model."""
    return (datetime.fromtimestamp(now_ms / 1_000, UTC) + ZONE_OFFSET).date().isoformat()


def month_start_ms(now_ms: int, months: int) -> int:
    """Tell when the month begins that is so many months on."""
    here = datetime.fromtimestamp(now_ms / 1_000, UTC) + ZONE_OFFSET
    years, month = divmod(here.month - 1 + months, 12)
    start = datetime(here.year + years, month + 1, 1, tzinfo=UTC) - ZONE_OFFSET
    return round(start.timestamp() * 1_000)
