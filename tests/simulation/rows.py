"""The rows of the books as the eye of the machine sees them."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

Look = Callable[[str], list[tuple[Any, ...]]]


class AccountRow(NamedTuple):
    """An account, without its names."""

    id: str
    plan: str | None
    status: str
    period: str
    used: int
    balance: int
    minute: int
    taken: int
    free_hour: int
    free_taken: int
    """Requests that were free in that hour although their callers gave them up."""


class KeyRow(NamedTuple):
    """A key, without its secret."""

    id: str
    account_id: str
    limit_per_minute: int | None
    expires_at_ms: int | None
    paused_at_ms: int | None
    revoked_at_ms: int | None
    minute: int
    taken: int


class RequestRow(NamedTuple):
    """A request, in the order of `as_admitted`."""

    id: str
    account_id: str
    key_id: str
    model_id: str
    credits: int
    source: str
    state: str
    period: str
    day: str
    created_at_ms: int
    deadline_ms: int
    ended_at_ms: int | None
    prompt_tokens: int | None
    completion_tokens: int | None
    reason: str | None

    @property
    def is_kept(self) -> bool:
        """Tell whether its credits are taken: held or charged."""
        return self.state in {"held", "charged"}

    @property
    def has_key(self) -> bool:
        """Tell whether it keeps its idempotency key: not where it is charged without a reply."""
        return self.is_kept and self.reason is None

    def as_admitted(self) -> tuple[Any, ...]:
        """Leave out what its end changes."""
        return (*self[:6], *self[7:11])


class TopupRow(NamedTuple):
    """A top-up or an adjustment, in the order of `Payment`."""

    reference: str
    account_id: str
    credits: int


class KeptRow(NamedTuple):
    """What is kept with an idempotency key."""

    request_id: str
    account_id: str
    key: str
    created_at_ms: int
    reply: bytes | None


class Rows(NamedTuple):
    """All tables, each by its rows' first column."""

    accounts: dict[str, AccountRow]
    keys: dict[str, KeyRow]
    requests: dict[str, RequestRow]
    topups: dict[str, TopupRow]
    kept: dict[str, KeptRow]
    usage: dict[tuple[str, ...], tuple[int, ...]]
    is_stopped: bool


def read_rows(look: Look) -> Rows:
    """Read everything."""
    usage = look(
        "SELECT account_id, day, key_id, model_id, requests, credits, prompt_tokens, completion_tokens FROM daily_usage"
    )
    return Rows(
        accounts=_by_id(
            map(
                AccountRow._make,
                look(
                    "SELECT id, plan, status, period, used, balance, window_minute, window_taken, abandoned_hour,"
                    " abandoned_taken FROM accounts"
                ),
            )
        ),
        keys=_by_id(
            map(
                KeyRow._make,
                look(
                    "SELECT id, account_id, limit_per_minute, expires_at_ms, paused_at_ms, revoked_at_ms,"
                    " window_minute, window_taken FROM keys"
                ),
            )
        ),
        requests=_by_id(
            map(
                RequestRow._make,
                look(
                    "SELECT id, account_id, key_id, model_id, credits, source, state, period, day,"
                    " created_at_ms, deadline_ms, ended_at_ms, prompt_tokens, completion_tokens, reason FROM requests"
                ),
            )
        ),
        topups=_by_id(
            map(
                TopupRow._make,
                look(
                    "SELECT reference, account_id, credits FROM topups"
                    " UNION ALL SELECT reference, account_id, credits FROM adjustments"
                ),
            )
        ),
        kept=_by_id(
            map(KeptRow._make, look("SELECT request_id, account_id, key, created_at_ms, reply FROM idempotency_keys"))
        ),
        usage={row[:4]: row[4:] for row in usage},
        is_stopped=bool(look("SELECT stopped FROM intake")[0][0]),
    )


def _by_id(rows: Iterable[Any]) -> dict[str, Any]:
    return {row[0]: row for row in rows}
