"""Open accounts, issue keys, add credits, switch intake: what operators do to the books.

Every act is one transaction. What is wrong with it is a ProvisioningError, whose message is for the person who asked.
"""

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection, Engine

from tarazu.domain.accounts import Account, AccountStatus, Intake, Key, Window
from tarazu.domain.calendar import Clock, period_of
from tarazu.domain.catalogue import ANY_MODEL, Catalogue
from tarazu.domain.credits import BALANCE_MAX
from tarazu.domain.keys import ENTROPY_BYTES, mint
from tarazu.service.checks import (
    HISTORY_LENGTH,
    NAME_LENGTH_MAX,
    ProvisioningError,
    at_least_one,
    checked_email,
    checked_length,
    checked_text,
)
from tarazu.service.crediting import (
    REFERENCE_LENGTH_MAX,
    TEXT_LENGTH_MAX,
    CreditHistory,
    checked_amount,
    record_adjustment,
    record_topup,
)
from tarazu.service.identifiers import new_account_id, new_adjustment_id, new_topup_id
from tarazu.store.accounts import (
    find_account,
    find_account_by_email,
    has_accounts,
    insert_account,
    list_accounts,
    update_account,
)
from tarazu.store.adjustments import Adjustment
from tarazu.store.credit_history import credit_changes
from tarazu.store.engine import transaction
from tarazu.store.intake import read_intake, write_intake
from tarazu.store.keys import find_key, insert_key, list_keys, revoke_key, set_key_expiry
from tarazu.store.pages import on_page
from tarazu.store.topups import Topup

RETRY_AFTER_S_MAX = 86_400


class IssuedKey(Struct, frozen=True):
    """A key just made. `secret` is the whole key; this is the only time that it can be seen."""

    key: Key
    secret: str

    def __repr__(self) -> str:
        """Name the key without its secret."""
        return f"IssuedKey({self.key.id})"


class Unchanged(Struct, frozen=True):
    """Stands for a setting that an act leaves as it is."""


UNCHANGED = Unchanged()


class Provisioning:
    """The acts on one set of books of whoever `by` names, who is recorded with every change of a balance."""

    def __init__(self, engine: Engine, catalogue: Catalogue, clock: Clock, *, by: str) -> None:
        self._engine = engine
        self._catalogue = catalogue
        self._clock = clock
        self._by = by  # checked where it is recorded: whoever only looks needs no name

    def create_account(
        self,
        *,
        name: str,
        email: str | None = None,
        plan: str | None = None,
        status: AccountStatus = AccountStatus.ACTIVE,
    ) -> Account:
        """Open an account with nothing used and no balance.

        Raises:
            ProvisioningError: bad name or email, email taken, unknown plan.
        """
        now_ms = self._clock()
        account = Account(
            id=new_account_id(),
            name=checked_text("name", name, NAME_LENGTH_MAX),
            email=None if email is None else checked_email(email),
            plan=self._plan_name(plan),
            status=status,
            period=period_of(now_ms, self._catalogue.zone),
            used=0,
            balance=0,
            window=Window(),
            created_at_ms=now_ms,
        )
        with self._transaction() as connection:
            if account.email is not None and find_account_by_email(connection, account.email) is not None:
                raise ProvisioningError(
                    f"There is an account with the email {account.email} already. "
                    "Give another, or find it with: tarazu account list"
                )
            insert_account(connection, account)
        return account

    def accounts(self) -> list[Account]:
        """List all accounts as they stand in this period, oldest first."""
        with self._reading() as connection:
            return self._on_this_page(connection, list_accounts(connection))

    def account(self, account_id: str) -> Account:
        """Show one account as it stands in this period.

        Raises:
            ProvisioningError: there is no such account.
        """
        with self._reading() as connection:
            (account,) = self._on_this_page(connection, [_account(connection, account_id)])
        return account

    def has_accounts(self) -> bool:
        """Tell whether anybody has an account yet."""
        with self._reading() as connection:
            return has_accounts(connection)

    def set_account(
        self,
        account_id: str,
        *,
        plan: str | Unchanged | None = UNCHANGED,
        status: AccountStatus | Unchanged = UNCHANGED,
    ) -> Account:
        """Change plan or status; both hold from the next request on.

        Raises:
            ProvisioningError: no such account or plan.
        """
        with self._transaction() as connection:
            account = _account(connection, account_id)
            account = replace(
                account,
                plan=account.plan if isinstance(plan, Unchanged) else self._plan_name(plan),
                status=account.status if isinstance(status, Unchanged) else status,
            )
            update_account(connection, account_id, plan=account.plan, status=account.status)
            (account,) = self._on_this_page(connection, [account])
        return account

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
        created_at_ms = self._clock()
        with self._transaction() as connection:
            _account(connection, account_id)
            return _issue(
                connection,
                account_id=account_id,
                name=checked_text("name", name, NAME_LENGTH_MAX),
                models=self._models(models),
                limit_per_minute=at_least_one("limit per minute", limit_per_minute),
                created_at_ms=created_at_ms,
                expires_at_ms=_after(created_at_ms, at_least_one("expiry", expires_in_s)),
            )

    def keys(self, account_id: str) -> list[Key]:
        """List the keys of an account, also those that have ended, oldest first.

        Raises:
            ProvisioningError: there is no such account.
        """
        with self._reading() as connection:
            _account(connection, account_id)
            return list_keys(connection, account_id)

    def revoke_key(self, key_id: str) -> Key:
        """End a key now; one that is revoked already stays as it is.

        Raises:
            ProvisioningError: there is no such key.
        """
        with self._transaction() as connection:
            _key(connection, key_id)
            revoke_key(connection, key_id, self._clock())
            return _key(connection, key_id)

    def replace_key(self, key_id: str, *, grace_s: int = 0) -> IssuedKey:
        """Issue a new key with the name, models, limit and expiry of an old one, which ends now or after `grace_s`.

        Raises:
            ProvisioningError: there is no such key, or it has ended.
        """
        now = self._clock()
        with self._transaction() as connection:
            old = _key(connection, key_id)
            if not old.is_active(now):
                raise ProvisioningError(f"{key_id} has ended; create a new key instead.")
            if grace_s > 0:
                ends_at_ms = now + grace_s * 1_000
                set_key_expiry(connection, key_id, min(ends_at_ms, old.expires_at_ms or ends_at_ms))
            else:
                revoke_key(connection, key_id, now)
            return _issue(
                connection,
                account_id=old.account_id,
                name=old.name,
                models=old.models,
                limit_per_minute=old.limit_per_minute,
                created_at_ms=now,
                expires_at_ms=old.expires_at_ms,
            )

    def add_credit(
        self, account_id: str, credits_: int, *, reference: str, note: str | None = None
    ) -> tuple[Topup, bool]:
        """Add credits to a balance, once for each reference; tell also whether it was added just now.

        The same reference again, for the same account and amount, answers with the first top-up and adds nothing.

        Raises:
            ProvisioningError: no such account, an amount that is not positive, a balance that would be too large, a
                reference used for something else, nobody who does it.
        """
        topup = Topup(
            id=new_topup_id(),
            account_id=account_id,
            credits=checked_amount(credits_, least=1),
            reference=checked_text("reference", reference, REFERENCE_LENGTH_MAX),
            note=None if note is None else checked_text("note", note, TEXT_LENGTH_MAX),
            made_by=self._made_by(),
            created_at_ms=self._clock(),
        )
        with self._transaction() as connection:
            _account(connection, account_id)
            return record_topup(connection, topup)

    def adjust_credit(
        self, account_id: str, credits_: int, *, reason: str, reference: str | None = None
    ) -> tuple[Adjustment, bool]:
        """Correct a balance, up or down; tell also whether it was done just now.

        With a reference it is done once, as a top-up is; without, each time.

        Raises:
            ProvisioningError: no such account, no reason, an amount of 0, a balance that would be below zero or too
                large, a reference used for something else, nobody who does it.
        """
        adjustment = Adjustment(
            id=new_adjustment_id(),
            account_id=account_id,
            credits=checked_amount(credits_, least=-BALANCE_MAX),
            reason=checked_text("reason", reason, TEXT_LENGTH_MAX),
            reference=None if reference is None else checked_text("reference", reference, REFERENCE_LENGTH_MAX),
            made_by=self._made_by(),
            created_at_ms=self._clock(),
        )
        with self._transaction() as connection:
            _account(connection, account_id)
            return record_adjustment(connection, adjustment)

    def credit_history(
        self, account_id: str, *, limit: int = HISTORY_LENGTH, before: str | None = None
    ) -> CreditHistory:
        """List what has changed a balance beside requests, newest first: at most `limit`, older than `before` if given.

        Raises:
            ProvisioningError: no such account, it has no change with the id `before`, or `limit` is out of bounds.
        """
        checked_length(limit)
        with self._reading() as connection:
            (account,) = self._on_this_page(connection, [_account(connection, account_id)])
            try:
                found = credit_changes(connection, account_id, limit=limit + 1, before=before)
            except LookupError:
                raise ProvisioningError(
                    f"{account_id} has no change {before!r}. List them with: tarazu credit history {account_id}"
                ) from None
        return CreditHistory(account=account, changes=tuple(found[:limit]), more=len(found) > limit)

    def stop_intake(self, *, retry_after_s: int = Intake().retry_after_s) -> Intake:
        """Refuse all completions from now on, everywhere.

        Raises:
            ProvisioningError: `retry_after_s` is out of bounds.
        """
        if not 1 <= retry_after_s <= RETRY_AFTER_S_MAX:
            raise ProvisioningError(f"The retry time must be 1 to {RETRY_AFTER_S_MAX} seconds.")
        return self._switch(Intake(stopped=True, retry_after_s=retry_after_s))

    def resume_intake(self) -> Intake:
        """Take completions again."""
        return self._switch(Intake())

    def intake(self) -> Intake:
        """Tell how the switch stands."""
        with self._reading() as connection:
            return read_intake(connection)

    def _switch(self, switch: Intake) -> Intake:
        with self._transaction() as connection:
            write_intake(connection, switch)
        return switch

    def _made_by(self) -> str:
        return checked_text("name of who does it", self._by, NAME_LENGTH_MAX)

    def _on_this_page(self, connection: Connection, found: Sequence[Account]) -> list[Account]:
        return on_page(connection, found, period_of(self._clock(), self._catalogue.zone))

    def _plan_name(self, plan: str | None) -> str | None:
        if plan is not None and plan not in self._catalogue.plans:
            raise ProvisioningError(f"There is no plan {plan!r}. Plans: {', '.join(self._catalogue.plans) or 'none'}.")
        return plan

    def _models(self, models: Sequence[str] | None) -> tuple[str, ...] | None:
        if models is None:
            return None
        if not models:
            raise ProvisioningError("A list of models must name at least one.")
        for model_id in models:
            if model_id != ANY_MODEL and model_id not in self._catalogue.models:
                raise ProvisioningError(f"There is no model {model_id!r}. Models: {', '.join(self._catalogue.models)}.")
        return tuple(models)

    def _transaction(self) -> AbstractContextManager[Connection]:
        return transaction(self._engine)

    def _reading(self) -> AbstractContextManager[Connection]:
        return transaction(self._engine, read_only=True)


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


def _account(connection: Connection, account_id: str) -> Account:
    account = find_account(connection, account_id)
    if account is None:
        raise ProvisioningError(f"There is no account {account_id!r}. List them with: tarazu account list")
    return account


def _key(connection: Connection, key_id: str) -> Key:
    key = find_key(connection, key_id)
    if key is None:
        raise ProvisioningError(f"There is no key {key_id!r}. List them with: tarazu key list ACCOUNT")
    return key


def _after(start_ms: int, seconds: int | None) -> int | None:
    return None if seconds is None else start_ms + seconds * 1_000
