"""Issue, list, change, pause, revoke and replace API keys."""

import os
from collections.abc import Sequence
from typing import Any

from msgspec import Struct, structs
from sqlalchemy import Connection

from tarazu.domain.accounts import Key, Window
from tarazu.domain.calendar import iso_time
from tarazu.domain.catalogue import ANY_MODEL
from tarazu.domain.keys import ENTROPY_BYTES, mint
from tarazu.service.acting import Acting
from tarazu.service.checks import (
    EXPIRY_S_MAX,
    HISTORY_LENGTH,
    LIMIT_PER_MINUTE_MAX,
    NAME_LENGTH_MAX,
    UNCHANGED,
    Unchanged,
    checked_count,
    checked_expiry,
    checked_text,
)
from tarazu.service.creating import asked_under, created_before, record_creation
from tarazu.service.finding import KeyPage, existing_account, keys_page, no_key
from tarazu.service.pace import require_pace
from tarazu.service.provisioning_errors import ConflictError, ProvisioningError
from tarazu.store.accounts import (
    lock_account,
)
from tarazu.store.keys import (
    count_live_keys,
    find_key,
    insert_key,
    list_keys,
    newest_active_keys,
    revoke_key,
    set_key_pause,
    succeed_key,
    update_key,
)
from tarazu.store.trail import Via

NEW_KEYS = ("key.create", "key.replace")
"""The acts that make a key."""
KEY_CHANGES = ("key.set", "key.pause", "key.resume")
"""The acts that change one and can be done again and again."""
KEY_CHANGES_HOURLY_MAX = 60
"""How many of them an account's holder may do in an hour, so that the trail stays bounded."""


class IssuedKey(Struct, frozen=True):
    """A key just made. `secret` is the whole key; this is the only time that it can be seen.

    `live_keys` is how many the account has by it, where its holder could not have made it. `old_ends_ms` is when the
    key ends whose place it takes, if there is one.
    """

    key: Key
    secret: str
    live_keys: int | None = None
    old_ends_ms: int | None = None

    def __repr__(self) -> str:
        """Name the key without its secret."""
        return f"IssuedKey({self.key.id})"


class KeyActs(Acting):
    """The acts on API keys."""

    def create_key(
        self,
        account_id: str,
        *,
        name: str,
        models: Sequence[str] | None = None,
        limit_per_minute: int | None = None,
        expires_in_s: int | None = None,
    ) -> IssuedKey:
        """Issue a key.

        Raises:
            ProvisioningError: no such account or model, a bad name, limit or expiry.
        """
        with self._transaction() as connection:
            return self._new_key(
                connection,
                account_id,
                name=name,
                models=models,
                limit_per_minute=limit_per_minute,
                expires_in_s=expires_in_s,
            )

    def create_key_once(
        self,
        account_id: str,
        reference: str,
        *,
        name: str,
        models: Sequence[str] | None,
        limit_per_minute: int | None,
        expires_in_s: int | None,
    ) -> tuple[Key, str | None]:
        """Issue a key, once for each reference; with it comes the whole key if it was issued just now.

        The same reference again, with the same values, answers with the first key as it is now, and None.

        Raises:
            ProvisioningError: as in `create_key`; a bad reference, or one that was used with other values.
        """
        asked = asked_under(reference, "key", account_id, name, models, limit_per_minute, expires_in_s)
        with self._transaction() as connection:
            existing_account(connection, account_id)
            first = created_before(connection, asked)
            if first is not None:
                return _key(connection, first, account_id), None
            issued = self._new_key(
                connection,
                account_id,
                name=name,
                models=models,
                limit_per_minute=limit_per_minute,
                expires_in_s=expires_in_s,
            )
            record_creation(connection, asked, issued.key.id, issued.key.created_at_ms)
            return issued.key, issued.secret

    def keys(self, account_id: str) -> list[Key]:
        """List the keys of an account, also those that have ended, oldest first.

        Raises:
            ProvisioningError: there is no such account.
        """
        with self._reading() as connection:
            existing_account(connection, account_id)
            return list_keys(connection, account_id)

    def keys_page(self, account_id: str, *, limit: int = HISTORY_LENGTH, after: str | None = None) -> KeyPage:
        """List the keys of an account, the newest first: at most `limit`, after the key `after` if given.

        Raises:
            ProvisioningError: there is no such account, it has no key `after`, or `limit` is out of bounds.
        """
        with self._reading() as connection:
            return keys_page(connection, account_id, limit=limit, after=after)

    def active_keys(self, account_id: str, *, limit: int) -> list[Key]:
        """List the active keys of an account, the newest first, at most `limit`."""
        with self._reading() as connection:
            return newest_active_keys(connection, account_id, self._clock(), limit=limit)

    def key(self, key_id: str) -> Key:
        """Show one key.

        Raises:
            ProvisioningError: there is no such key.
        """
        with self._reading() as connection:
            return _key(connection, key_id, None)

    def revoke_key(self, key_id: str, *, account_id: str | None = None) -> Key:
        """End a key now, of this account if one is given; one that is revoked already stays as it is.

        Raises:
            ProvisioningError: there is no such key.
        """
        with self._transaction() as connection:
            key = _lock_key(connection, key_id, account_id)
            if key.revoked_at_ms is None:
                revoke_key(connection, key_id, self._clock())
                self._record(connection, "key.revoke", key.account_id, key_id, name=key.name)
            return _key(connection, key_id, account_id)

    def pause_key(self, key_id: str, *, account_id: str | None = None) -> Key:
        """Let requests with a key be refused until it is resumed; one that is paused already stays as it is.

        Raises:
            ProvisioningError: there is no such key, or it has ended.
        """
        return self._set_pause(key_id, account_id, is_paused=True)

    def resume_key(self, key_id: str, *, account_id: str | None = None) -> Key:
        """Let a key work again; one that is not paused stays as it is.

        Raises:
            ProvisioningError: there is no such key, or it has ended.
        """
        return self._set_pause(key_id, account_id, is_paused=False)

    def set_key(
        self,
        key_id: str,
        *,
        name: str | Unchanged = UNCHANGED,
        models: Sequence[str] | Unchanged | None = UNCHANGED,
        limit_per_minute: int | Unchanged | None = UNCHANGED,
        expires_in_s: int | Unchanged | None = UNCHANGED,
        account_id: str | None = None,
    ) -> Key:
        """Change what a key is called and may do, from the next request on; None takes a bound away.

        A model that it has may stay, also where the catalogue has it no more.

        Raises:
            ProvisioningError: no such key or model, it has ended, a bad name, limit or expiry, or another expiry for a
                key that ends since it has been replaced.
        """
        now = self._clock()
        with self._transaction() as connection:
            before = _lock_key(connection, key_id, account_id)
            _require_live(before, now)
            if before.successor_id is not None and not isinstance(expires_in_s, Unchanged):
                raise ConflictError("{key} has been replaced, so its end stays as it is.", key=key_id)
            key = structs.replace(
                before,
                name=before.name if isinstance(name, Unchanged) else checked_text("name", name, NAME_LENGTH_MAX),
                models=before.models if isinstance(models, Unchanged) else self._models(models, before.models or ()),
                limit_per_minute=before.limit_per_minute
                if isinstance(limit_per_minute, Unchanged)
                else checked_count(
                    "limit per minute", limit_per_minute, member="limit_per_minute", most=LIMIT_PER_MINUTE_MAX
                ),
                expires_at_ms=before.expires_at_ms
                if isinstance(expires_in_s, Unchanged)
                else checked_expiry(now, expires_in_s),
            )
            update_key(connection, key)
            changes = {
                member: [_told(member, getattr(before, member)), _told(member, getattr(key, member))]
                for member in ("name", "models", "limit_per_minute", "expires_at_ms")
                if getattr(before, member) != getattr(key, member)
            }
            if changes:
                self._keep_pace(connection, key.account_id, now)
                told = {"expires_at" if member == "expires_at_ms" else member: both for member, both in changes.items()}
                self._record(connection, "key.set", key.account_id, key_id, **told)
            return key

    def _set_pause(self, key_id: str, account_id: str | None, *, is_paused: bool) -> Key:
        now = self._clock()
        with self._transaction() as connection:
            key = _lock_key(connection, key_id, account_id)
            _require_live(key, now)
            if (key.paused_at_ms is not None) is not is_paused:
                self._keep_pace(connection, key.account_id, now)
                set_key_pause(connection, key_id, now if is_paused else None)
                self._record(
                    connection, "key.pause" if is_paused else "key.resume", key.account_id, key_id, name=key.name
                )
            return _key(connection, key_id, account_id)

    def _keep_pace(self, connection: Connection, account_id: str, now_ms: int) -> None:
        """Hold a holder, of an account that is locked, to the changes of an hour.

        Raises:
            ConflictError: there were as many.
        """
        if self._via is Via.HOLDER:
            require_pace(connection, account_id, KEY_CHANGES, hourly_max=KEY_CHANGES_HOURLY_MAX, now_ms=now_ms)

    def replace_key(self, key_id: str, *, grace_s: int = 0, account_id: str | None = None) -> IssuedKey:
        """Issue a new key with the name, models, limit and expiry of an old one, which ends now or after `grace_s`.

        Where an account is given the key must be one of it.

        Raises:
            ProvisioningError: there is no such key, it has ended or been replaced, or the time is too long.
        """
        checked_count("time of grace", grace_s, member="grace_s", least=0, most=EXPIRY_S_MAX)
        now = self._clock()
        with self._transaction() as connection:
            old = _lock_key(connection, key_id, account_id)
            _require_live(old, now)
            if old.successor_id is not None:
                raise ConflictError(
                    "{key} has been replaced by {successor} already. Replace that one, or create a new key.",
                    key=key_id,
                    successor=old.successor_id,
                )
            live_keys = self._live_keys(connection, old.account_id, more=1 if grace_s else 0)
            issued = _issue(
                connection,
                account_id=old.account_id,
                name=old.name,
                models=old.models,
                limit_per_minute=old.limit_per_minute,
                created_at_ms=now,
                expires_at_ms=old.expires_at_ms,
            )
            if grace_s > 0:
                succeed_key(connection, key_id, issued.key.id, now + grace_s * 1_000)
            else:
                revoke_key(connection, key_id, now)
            detail = {"name": old.name, "in_place_of": old.id, "grace_s": grace_s}
            self._record(connection, "key.replace", old.account_id, issued.key.id, **detail)
        old_ends_ms = min(now + grace_s * 1_000, old.expires_at_ms or now + grace_s * 1_000)
        return structs.replace(issued, live_keys=live_keys, old_ends_ms=old_ends_ms)

    def _live_keys(self, connection: Connection, account_id: str, *, more: int) -> int | None:
        """Hold a holder, of an account that is locked, to the bounds of keys; tell others when they go beyond.

        Raises:
            ConflictError: there would be more keys than may be, or too many were made within an hour.
        """
        bounds, now_ms = self._catalogue.bounds, self._clock()
        live_keys = count_live_keys(connection, account_id, now_ms) + more
        if self._via is not Via.HOLDER:
            return live_keys if live_keys > bounds.keys else None
        if more and live_keys > bounds.keys:
            raise ConflictError(
                "An account may have {most} keys that have not ended, and this one has as many. Revoke one first.",
                most=bounds.keys,
            )
        require_pace(connection, account_id, NEW_KEYS, hourly_max=bounds.new_keys_hourly, now_ms=now_ms)
        return None

    def _new_key(
        self,
        connection: Connection,
        account_id: str,
        *,
        name: str,
        models: Sequence[str] | None,
        limit_per_minute: int | None,
        expires_in_s: int | None,
    ) -> IssuedKey:
        created_at_ms = self._clock()
        existing_account(connection, account_id)
        lock_account(connection, account_id)
        live_keys = self._live_keys(connection, account_id, more=1)
        issued = _issue(
            connection,
            account_id=account_id,
            name=checked_text("name", name, NAME_LENGTH_MAX),
            models=self._models(models),
            limit_per_minute=checked_count(
                "limit per minute", limit_per_minute, member="limit_per_minute", most=LIMIT_PER_MINUTE_MAX
            ),
            created_at_ms=created_at_ms,
            expires_at_ms=checked_expiry(created_at_ms, expires_in_s),
        )
        self._record(connection, "key.create", account_id, issued.key.id, name=issued.key.name)
        return structs.replace(issued, live_keys=live_keys)

    def _models(self, models: Sequence[str] | None, kept: Sequence[str] = ()) -> tuple[str, ...] | None:
        if models is None:
            return None
        if not models:
            raise ProvisioningError("A list of models must name at least one.", member="models")
        for model_id in models:
            if model_id not in (ANY_MODEL, *kept) and model_id not in self._catalogue.models:
                raise ProvisioningError(
                    "There is no model {model!r}. Models: {models}.",
                    member="models",
                    model=model_id,
                    models=", ".join(self._catalogue.models),
                )
        return tuple(dict.fromkeys(models))


def _issue(
    connection: Connection,
    *,
    account_id: str,
    name: str,
    models: tuple[str, ...] | None,
    limit_per_minute: int | None,
    created_at_ms: int,
    expires_at_ms: int | None,
) -> IssuedKey:
    minted = mint(os.urandom(ENTROPY_BYTES))
    key = Key(
        id=minted.id,
        account_id=account_id,
        name=name,
        digest=minted.digest,
        models=models,
        limit_per_minute=limit_per_minute,
        created_at_ms=created_at_ms,
        expires_at_ms=expires_at_ms,
        revoked_at_ms=None,
        window=Window(),
    )
    insert_key(connection, key)
    return IssuedKey(key, minted.text)


def _require_live(key: Key, now_ms: int) -> None:
    if key.has_ended(now_ms):
        raise ConflictError("{key} no longer works; create a new key instead.", key=key.id)


def _told(member: str, value: Any) -> Any:
    """Write for the trail how it was, or is now."""
    if isinstance(value, tuple):
        return ", ".join(value)
    return iso_time(value) if member == "expires_at_ms" and value is not None else value


def _key(connection: Connection, key_id: str, account_id: str | None) -> Key:
    key = find_key(connection, key_id)
    if key is None or account_id not in (None, key.account_id):
        raise no_key(key_id)
    return key


def _lock_key(connection: Connection, key_id: str, account_id: str | None) -> Key:
    """Read a key to change it. Its account is locked first, as everywhere: the trail's row will lead there."""
    key = _key(connection, key_id, account_id)
    lock_account(connection, key.account_id)
    return _key(connection, key_id, account_id)
