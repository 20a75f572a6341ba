"""The admin API's tokens: what each of them lets a program do."""

from enum import StrEnum

from msgspec import Struct


class Scope(StrEnum):
    """What a token is for: to look, to change accounts with their keys, to change balances."""

    READ = "read"
    ACCOUNTS = "accounts"
    CREDITS = "credits"


class AdminToken(Struct, frozen=True, kw_only=True):
    """One token. `digest` is the SHA-256 of its secret, `made_by` who has made it."""

    id: str
    name: str
    digest: bytes
    scopes: tuple[Scope, ...]
    made_by: str
    created_at_ms: int
    expires_at_ms: int | None
    revoked_at_ms: int | None

    def is_active(self, now_ms: int) -> bool:
        """Tell whether the token is neither revoked nor expired."""
        return self.revoked_at_ms is None and (self.expires_at_ms is None or now_ms < self.expires_at_ms)

    def allows(self, scope: Scope) -> bool:
        """Tell whether the token is for this. Whoever may change something may look as well."""
        return scope is Scope.READ or scope in self.scopes
