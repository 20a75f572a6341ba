"""Open accounts, issue keys, add credits, switch intake, and all else that operators and holders do to the books.

Every act is one transaction. What is wrong with it is a ProvisioningError, whose message is for the person who asked.
"""

import os
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection

from tarazu.domain.accounts import Account, AccountStatus, Intake, Key, Window
from tarazu.domain.calendar import period_of
from tarazu.domain.catalogue import ANY_MODEL
from tarazu.domain.credits import BALANCE_MAX
from tarazu.domain.keys import ENTROPY_BYTES, mint
from tarazu.domain.people import PersonKind
from tarazu.service.admin_token_acts import AdminTokenActs
from tarazu.service.checks import (
    EXPIRY_S_MAX,
    HISTORY_LENGTH,
    LIMIT_PER_MINUTE_MAX,
    NAME_LENGTH_MAX,
    checked_count,
    checked_email,
    checked_expiry,
    checked_length,
    checked_text,
)
from tarazu.service.creating import asked_under, created_before, record_creation
from tarazu.service.crediting import (
    REFERENCE_LENGTH_MAX,
    TEXT_LENGTH_MAX,
    CreditHistory,
    checked_amount,
    record_adjustment,
    record_topup,
)
from tarazu.service.finding import AccountPage, KeyPage, accounts_page, existing_account, keys_page, no_key
from tarazu.service.identifiers import new_account_id, new_adjustment_id, new_topup_id
from tarazu.service.people_acts import PeopleActs
from tarazu.service.provisioning_errors import ConflictError, NotThereError, ProvisioningError
from tarazu.store.accounts import (
    has_accounts,
    insert_account,
    list_accounts,
    lock_account,
    set_account_email,
    update_account,
)
from tarazu.store.adjustments import Adjustment
from tarazu.store.credit_history import credit_changes
from tarazu.store.intake import read_intake, write_intake
from tarazu.store.invitations import forget_invitation
from tarazu.store.keys import find_key, insert_key, list_keys, revoke_key, set_key_expiry
from tarazu.store.owners import Owner
from tarazu.store.pages import on_page
from tarazu.store.topups import Topup
from tarazu.store.trail import Act, list_acts

RETRY_AFTER_S_MAX = 86_400


class IssuedKey(Struct, frozen=True):
    """A key just made. `secret` is the whole key; this is the only time that it can be seen."""

    key: Key
    secret: str

    def __repr__(self) -> str:
        """Name the key without its secret."""
        return f"IssuedKey({self.key.id})"


class Trail(Struct, frozen=True):
    """Acts, newest first; `more` when there are older ones."""

    acts: tuple[Act, ...]
    more: bool


class Unchanged(Struct, frozen=True):
    """Stands for a setting that an act leaves as it is."""


UNCHANGED = Unchanged()


class Provisioning(PeopleActs, AdminTokenActs):
    """The acts on one set of books of whoever `by` names, those of the two classes above among them."""

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
        with self._transaction() as connection:
            return self._open_account(connection, name=name, email=email, plan=plan, status=status)

    def create_account_once(
        self, reference: str, *, name: str, email: str | None, plan: str | None, status: AccountStatus
    ) -> tuple[Account, bool]:
        """Open an account, once for each reference; tell also whether it was opened just now.

        The same reference again, with the same values, answers with the first account as it is now.

        Raises:
            ProvisioningError: as in `create_account`; a bad reference, or one that was used with other values.
        """
        asked = asked_under(reference, "account", name, email, plan, status)
        with self._transaction() as connection:
            first = created_before(connection, asked)
            if first is not None:
                (account,) = self._on_this_page(connection, [existing_account(connection, first)])
                return account, False
            account = self._open_account(connection, name=name, email=email, plan=plan, status=status)
            record_creation(connection, asked, account.id, account.created_at_ms)
            return account, True

    def _open_account(
        self, connection: Connection, *, name: str, email: str | None, plan: str | None, status: AccountStatus
    ) -> Account:
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
        if not insert_account(connection, account):
            raise _email_taken(account.email)
        detail = {"name": account.name, "email": account.email, "plan": account.plan, "status": account.status}
        self._record(connection, "account.create", account.id, **detail)
        return account

    def accounts(self) -> list[Account]:
        """List all accounts as they stand in this period, oldest first."""
        with self._reading() as connection:
            return self._on_this_page(connection, list_accounts(connection))

    def accounts_page(
        self, *, search: str | None = None, limit: int = HISTORY_LENGTH, after: str | None = None
    ) -> AccountPage:
        """List accounts as they stand in this period, the newest first: at most `limit`, after `after` if given.

        With `search` it is the one with that id or email, or else those with that text in their name or email.

        Raises:
            ProvisioningError: there is no account `after`, or `limit` is out of bounds.
        """
        with self._reading() as connection:
            page = accounts_page(connection, search=search, limit=limit, after=after)
            return replace(page, accounts=tuple(self._on_this_page(connection, page.accounts)))

    def account(self, account_id: str) -> Account:
        """Show one account as it stands in this period.

        Raises:
            ProvisioningError: there is no such account.
        """
        with self._reading() as connection:
            (account,) = self._on_this_page(connection, [existing_account(connection, account_id)])
        return account

    def has_accounts(self) -> bool:
        """Tell whether anybody has an account yet."""
        with self._reading() as connection:
            return has_accounts(connection)

    def set_account(
        self,
        account_id: str,
        *,
        email: str | Unchanged = UNCHANGED,
        plan: str | Unchanged | None = UNCHANGED,
        status: AccountStatus | Unchanged = UNCHANGED,
    ) -> Account:
        """Change email, plan or status, from the next request on. An invitation that went to another email is void.

        Raises:
            ProvisioningError: no such account or plan, a bad email, or one that is taken.
        """
        with self._transaction() as connection:
            lock_account(connection, account_id)
            before = existing_account(connection, account_id)
            account = replace(
                before,
                email=before.email if isinstance(email, Unchanged) else checked_email(email),
                plan=before.plan if isinstance(plan, Unchanged) else self._plan_name(plan),
                status=before.status if isinstance(status, Unchanged) else status,
            )
            if account.email is not None and account.email != before.email:
                if not set_account_email(connection, account_id, account.email):
                    raise _email_taken(account.email)
                forget_invitation(connection, Owner(PersonKind.HOLDER, account_id))
            update_account(connection, account_id, plan=account.plan, status=account.status)
            changes = {
                name: [getattr(before, name), getattr(account, name)]
                for name in ("email", "plan", "status")
                if getattr(before, name) != getattr(account, name)
            }
            if changes:
                self._record(connection, "account.set", account_id, **changes)
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
        return issued

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

    def replace_key(self, key_id: str, *, grace_s: int = 0, account_id: str | None = None) -> IssuedKey:
        """Issue a new key with the name, models, limit and expiry of an old one, which ends now or after `grace_s`.

        Where an account is given the key must be one of it.

        Raises:
            ProvisioningError: there is no such key, it has ended, or the time is too long.
        """
        checked_count("time of grace", grace_s, member="grace_s", least=0, most=EXPIRY_S_MAX)
        now = self._clock()
        with self._transaction() as connection:
            old = _lock_key(connection, key_id, account_id)
            if not old.is_active(now):
                raise ConflictError("{key} has ended; create a new key instead.", key=key_id)
            if grace_s > 0:
                ends_at_ms = now + grace_s * 1_000
                set_key_expiry(connection, key_id, min(ends_at_ms, old.expires_at_ms or ends_at_ms))
            else:
                revoke_key(connection, key_id, now)
            issued = _issue(
                connection,
                account_id=old.account_id,
                name=old.name,
                models=old.models,
                limit_per_minute=old.limit_per_minute,
                created_at_ms=now,
                expires_at_ms=old.expires_at_ms,
            )
            detail = {"name": old.name, "in_place_of": old.id, "grace_s": grace_s}
            self._record(connection, "key.replace", old.account_id, issued.key.id, **detail)
        return issued

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
            existing_account(connection, account_id)
            recorded, is_new = record_topup(connection, topup)
            if is_new:
                detail = {"credits": topup.credits, "reference": topup.reference}
                self._record(connection, "credit.add", account_id, topup.id, **detail)
        return recorded, is_new

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
            existing_account(connection, account_id)
            recorded, is_new = record_adjustment(connection, adjustment)
            if is_new:
                detail = {"credits": adjustment.credits, "reason": adjustment.reason}
                self._record(connection, "credit.adjust", account_id, adjustment.id, **detail)
        return recorded, is_new

    def credit_history(
        self, account_id: str, *, limit: int = HISTORY_LENGTH, before: str | None = None
    ) -> CreditHistory:
        """List what has changed a balance beside requests, newest first: at most `limit`, older than `before` if given.

        Raises:
            ProvisioningError: no such account, it has no change with the id `before`, or `limit` is out of bounds.
        """
        checked_length(limit)
        with self._reading() as connection:
            (account,) = self._on_this_page(connection, [existing_account(connection, account_id)])
            try:
                found = credit_changes(connection, account_id, limit=limit + 1, before=before)
            except LookupError:
                raise NotThereError(
                    "{account} has no change {change!r}.",
                    hint=f"List them with: tarazu credit history {account_id}",
                    account=account_id,
                    change=before,
                ) from None
        return CreditHistory(account=account, changes=tuple(found[:limit]), more=len(found) > limit)

    def stop_intake(self, *, retry_after_s: int = Intake().retry_after_s) -> Intake:
        """Refuse all completions from now on, everywhere.

        Raises:
            ProvisioningError: `retry_after_s` is out of bounds.
        """
        if not 1 <= retry_after_s <= RETRY_AFTER_S_MAX:
            raise ProvisioningError(
                "The retry time must be 1 to {most} seconds.", member="retry_after_s", most=RETRY_AFTER_S_MAX
            )
        return self._switch(Intake(stopped=True, retry_after_s=retry_after_s), "intake.stop")

    def resume_intake(self) -> Intake:
        """Take completions again."""
        return self._switch(Intake(), "intake.resume")

    def intake(self) -> Intake:
        """Tell how the switch stands."""
        with self._reading() as connection:
            return read_intake(connection)

    def trail(self, *, limit: int = HISTORY_LENGTH, account_id: str | None = None, before: str | None = None) -> Trail:
        """List what was done, newest first: at most `limit` acts, of one account if given, before the act `before`.

        Raises:
            ProvisioningError: `limit` is out of bounds, or there is no such account.
        """
        checked_length(limit)
        with self._reading() as connection:
            if account_id is not None:
                existing_account(connection, account_id)
            found = list_acts(connection, limit=limit + 1, account_id=account_id, before=before)
        return Trail(acts=tuple(found[:limit]), more=len(found) > limit)

    def _switch(self, switch: Intake, act: str) -> Intake:
        with self._transaction() as connection:
            write_intake(connection, switch)
            self._record(connection, act, None, **({"retry_after_s": switch.retry_after_s} if switch.stopped else {}))
        return switch

    def _on_this_page(self, connection: Connection, found: Sequence[Account]) -> list[Account]:
        return on_page(connection, found, period_of(self._clock(), self._catalogue.zone))

    def _plan_name(self, plan: str | None) -> str | None:
        if plan is not None and plan not in self._catalogue.plans:
            raise ProvisioningError(
                "There is no plan {plan!r}. Plans: {plans}.",
                member="plan",
                plan=plan,
                plans=", ".join(self._catalogue.plans) or "none",
            )
        return plan

    def _models(self, models: Sequence[str] | None) -> tuple[str, ...] | None:
        if models is None:
            return None
        if not models:
            raise ProvisioningError("A list of models must name at least one.", member="models")
        for model_id in models:
            if model_id != ANY_MODEL and model_id not in self._catalogue.models:
                raise ProvisioningError(
                    "There is no model {model!r}. Models: {models}.",
                    member="models",
                    model=model_id,
                    models=", ".join(self._catalogue.models),
                )
        return tuple(dict.fromkeys(models))


def _email_taken(email: str | None) -> ConflictError:
    return ConflictError(
        "There is an account with the email {email} already. Give another.",
        hint="Or find it with: tarazu account list",
        member="email",
        email=email,
    )


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
