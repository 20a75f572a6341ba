"""Issue, list and revoke the admin API's tokens."""

import os
from collections.abc import Sequence

from msgspec import Struct

from tarazu.domain.admin_tokens import AdminToken, Scope
from tarazu.domain.keys import ADMIN_TOKEN, ENTROPY_BYTES, mint
from tarazu.service.acting import Acting
from tarazu.service.checks import NAME_LENGTH_MAX, checked_expiry, checked_text
from tarazu.service.provisioning_errors import NotThereError, ProvisioningError
from tarazu.store.admin_tokens import find_admin_token, insert_admin_token, list_admin_tokens, revoke_admin_token


class IssuedToken(Struct, frozen=True):
    """A token just made. `secret` is the whole token; this is the only time that it can be seen."""

    token: AdminToken
    secret: str

    def __repr__(self) -> str:
        """Name the token without its secret."""
        return f"IssuedToken({self.token.id})"


class AdminTokenActs(Acting):
    """The acts on the admin API's tokens."""

    def create_admin_token(self, *, name: str, scopes: Sequence[str], expires_in_s: int | None = None) -> IssuedToken:
        """Issue a token.

        Raises:
            ProvisioningError: a bad name or expiry, no scope, or one that there is not.
        """
        created_at_ms = self._clock()
        minted = mint(os.urandom(ENTROPY_BYTES), ADMIN_TOKEN)
        token = AdminToken(
            id=minted.id,
            name=checked_text("name", name, NAME_LENGTH_MAX),
            digest=minted.digest,
            scopes=_checked_scopes(scopes),
            made_by=self._made_by(),
            created_at_ms=created_at_ms,
            expires_at_ms=checked_expiry(created_at_ms, expires_in_s),
            revoked_at_ms=None,
        )
        with self._transaction() as connection:
            insert_admin_token(connection, token)
            self._record(connection, "token.create", None, token.id, name=token.name, scopes=token.scopes)
        return IssuedToken(token, minted.text)

    def admin_tokens(self) -> list[AdminToken]:
        """List all tokens, also those that have ended, oldest first."""
        with self._reading() as connection:
            return list_admin_tokens(connection)

    def revoke_admin_token(self, token_id: str) -> AdminToken:
        """End a token now; one that is revoked already stays as it is.

        Raises:
            ProvisioningError: there is no such token.
        """
        with self._transaction() as connection:
            token = find_admin_token(connection, token_id)
            if token is None:
                raise NotThereError(
                    "There is no admin token {token!r}.", hint="List them with: tarazu admin token list", token=token_id
                )
            if revoke_admin_token(connection, token_id, self._clock()):
                self._record(connection, "token.revoke", None, token_id, name=token.name)
            revoked = find_admin_token(connection, token_id)
        assert revoked is not None, "tokens are never deleted"
        return revoked


def _checked_scopes(asked: Sequence[str]) -> tuple[Scope, ...]:
    """Take each scope once, in one order, whatever the order that they were asked for in."""
    for name in asked:
        if name not in list(Scope):
            raise ProvisioningError(
                "There is no scope {scope!r}. Scopes: {scopes}.", scope=name, scopes=", ".join(Scope)
            )
    if not asked:
        raise ProvisioningError("A token needs at least one scope of these: {scopes}.", scopes=", ".join(Scope))
    return tuple(scope for scope in Scope if scope in asked)
