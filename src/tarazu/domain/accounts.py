"""Who buys: accounts, their keys, and the switch that stops all intake, as rows of the books."""

from enum import StrEnum

from msgspec import Struct

from tarazu.domain.calendar import MILLISECONDS_PER_MINUTE


class AccountStatus(StrEnum):
    """Whether an account may use the service; only `active` may."""

    ACTIVE = "active"
    UNVERIFIED = "unverified"
    INACTIVE = "inactive"
    BLOCKED = "blocked"


class KeyState(StrEnum):
    """Whether a key opens anything; only `active` does."""

    ACTIVE = "active"
    PAUSED = "paused"
    EXPIRED = "expired"
    REVOKED = "revoked"


class Window(Struct, frozen=True):
    """The requests that one account or key has sent in one clock minute.

    `minute` counts from the epoch; `taken` is the number of places used in it.
    """

    minute: int = 0
    taken: int = 0

    @property
    def last_used_ms(self) -> int | None:
        """When the minute began, in milliseconds; None where no request has come, as that of 1970 says."""
        return self.minute * MILLISECONDS_PER_MINUTE or None


class Account(Struct, frozen=True, kw_only=True):
    """One buyer. `used` is what plan requests of `period` (YYYY-MM) cost; `used` and `balance` are in credits.

    `abandoned_taken` requests without a reply were free in `abandoned_hour`, counted in hours since the epoch.
    """

    id: str
    name: str
    email: str | None
    plan: str | None
    status: AccountStatus
    period: str
    used: int
    balance: int
    window: Window
    created_at_ms: int
    abandoned_hour: int = 0
    abandoned_taken: int = 0

    @property
    def last_used_ms(self) -> int | None:
        """When the minute began in which its last request took a place in the window; None where none has."""
        return self.window.last_used_ms


class Key(Struct, frozen=True, kw_only=True):
    """One API key of an account. `digest` is the SHA-256 of its secret; `models` may narrow the plan's list."""

    id: str
    account_id: str
    name: str
    digest: bytes
    models: tuple[str, ...] | None
    limit_per_minute: int | None
    created_at_ms: int
    expires_at_ms: int | None
    revoked_at_ms: int | None
    window: Window
    paused_at_ms: int | None = None
    successor_id: str | None = None
    """The key that was made in its place, while it works on until it expires."""

    def is_active(self, now_ms: int) -> bool:
        """Tell whether the key is neither revoked, nor expired, nor paused."""
        return self.state(now_ms) is KeyState.ACTIVE

    def has_ended(self, now_ms: int) -> bool:
        """Tell whether the key was revoked or has expired, for good."""
        return self.state(now_ms) in {KeyState.REVOKED, KeyState.EXPIRED}

    def state(self, now_ms: int) -> KeyState:
        """Tell the state; one that was revoked stays so, also after it would have expired."""
        if self.revoked_at_ms is not None:
            return KeyState.REVOKED
        is_over = self.expires_at_ms is not None and now_ms >= self.expires_at_ms
        if is_over:
            return KeyState.EXPIRED
        return KeyState.ACTIVE if self.paused_at_ms is None else KeyState.PAUSED


class Intake(Struct, frozen=True):
    """The operator's switch: while `stopped`, completions are refused with `retry_after_s`.

    With less than some minutes clients wait in silence, and try again in vain.
    """

    stopped: bool = False
    retry_after_s: int = 300
