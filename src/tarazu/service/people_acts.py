"""Invite people and sign them out; make operators, and take the pages from them."""

import os

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection

from tarazu.domain.accounts import Account, AccountStatus
from tarazu.domain.calendar import MILLISECONDS_PER_DAY
from tarazu.domain.people import Operator, OperatorStatus, PersonKind
from tarazu.domain.secrets import ENTROPY_BYTES, digest_of, secret_from
from tarazu.service.acting import Acting
from tarazu.service.checks import NAME_LENGTH_MAX, checked_email, checked_text
from tarazu.service.configuration.addresses import ADMIN_PATH, PANEL_PATH
from tarazu.service.finding import existing_account
from tarazu.service.identifiers import new_operator_id
from tarazu.service.people import shut_out
from tarazu.service.provisioning_errors import ConflictError, NotThereError
from tarazu.store.accounts import lock_account
from tarazu.store.invitations import replace_invitation
from tarazu.store.operators import (
    insert_operator,
    list_operators,
    lock_operator,
    set_operator_email,
    update_operator,
)
from tarazu.store.owners import Owner
from tarazu.store.pending_sign_ins import end_pending
from tarazu.store.second_factors import forget_second_factor
from tarazu.store.sessions import end_sessions

INVITATION_DAYS = 3
_PATHS = {PersonKind.HOLDER: PANEL_PATH, PersonKind.OPERATOR: ADMIN_PATH}


class Invitation(Struct, frozen=True):
    """An invitation just made. `token` is what its link ends with; this is the only time that it can be seen."""

    kind: PersonKind
    token: str
    expires_at_ms: int

    def link(self, base_url: str) -> str:
        """Write the link, under the address by which callers reach the service."""
        return f"{base_url}{_PATHS[self.kind]}/invitation/{self.token}"

    def __repr__(self) -> str:
        """Leave the token out."""
        return f"Invitation({self.kind.value})"


class PeopleActs(Acting):
    """The acts on who signs in."""

    def invite_holder(self, account_id: str) -> Invitation:
        """Let an account's holder choose a password, by a link that works once. An older link is void from now on.

        Raises:
            ProvisioningError: no such account, it has no email, or it is blocked.
        """
        with self._transaction() as connection:
            account = _lock_account(connection, account_id)
            if account.email is None:
                raise ConflictError(
                    "{account} has no email address, which its holder would sign in with.",
                    hint=f"Give it one with: tarazu account set {account_id} --email EMAIL",
                    account=account_id,
                )
            if account.status is AccountStatus.BLOCKED:
                raise ConflictError("{account} is blocked: its holder may not sign in.", account=account_id)
            invitation = self._invite(connection, Owner(PersonKind.HOLDER, account_id))
            self._record(connection, "account.invite", account_id, email=account.email)
        return invitation

    def sign_out_holder(self, account_id: str) -> int:
        """End all sessions of an account's holder; tell how many there were.

        Raises:
            ProvisioningError: there is no such account.
        """
        with self._transaction() as connection:
            _lock_account(connection, account_id)
            ended = end_sessions(connection, Owner(PersonKind.HOLDER, account_id), self._clock())
            self._record(connection, "account.sign_out", account_id, sessions=ended)
        return ended

    def create_operator(self, *, email: str, name: str) -> tuple[Operator, Invitation]:
        """Make an operator, who chooses a password by the invitation.

        Raises:
            ProvisioningError: a bad email or name, or an operator with this email is there.
        """
        operator = Operator(
            id=new_operator_id(),
            email=checked_email(email),
            name=checked_text("name", name, NAME_LENGTH_MAX),
            status=OperatorStatus.ACTIVE,
            has_password=False,
            language=None,
            created_at_ms=self._clock(),
        )
        with self._transaction() as connection:
            if not insert_operator(connection, operator):
                raise _operator_email_taken(operator.email)
            invitation = self._invite(connection, Owner(PersonKind.OPERATOR, operator.id))
            detail = {"name": operator.name, "email": operator.email}
            self._record(connection, "operator.create", None, operator.id, **detail)
        return operator, invitation

    def operators(self) -> list[Operator]:
        """List all operators, oldest first."""
        with self._reading() as connection:
            return list_operators(connection)

    def invite_operator(self, operator_id: str) -> Invitation:
        """Let an operator choose a password, by a link that works once. An older link is void from now on.

        Raises:
            ProvisioningError: there is no such operator, or one who is inactive.
        """
        with self._transaction() as connection:
            operator = _lock_operator(connection, operator_id)
            if operator.status is not OperatorStatus.ACTIVE:
                raise ConflictError(
                    "{operator} is inactive and may not sign in.",
                    hint=f"Let them in again with: tarazu admin operator set {operator_id} --status active",
                    operator=operator_id,
                )
            invitation = self._invite(connection, Owner(PersonKind.OPERATOR, operator_id))
            self._record(connection, "operator.invite", None, operator_id, email=operator.email)
        return invitation

    def set_operator(
        self, operator_id: str, *, email: str | None = None, status: OperatorStatus | None = None
    ) -> Operator:
        """Take the pages from an operator, whose sessions and invitation end with it, or open them again.

        With another email the password and the second factor go too. None leaves either as it is.

        Raises:
            ProvisioningError: no such operator, a bad email, or one that is taken.
        """
        with self._transaction() as connection:
            before = _lock_operator(connection, operator_id)
            after = replace(
                before,
                email=before.email if email is None else checked_email(email),
                status=status or before.status,
            )
            is_another_person = after.email != before.email
            if is_another_person and not set_operator_email(connection, operator_id, after.email):
                raise _operator_email_taken(after.email)
            update_operator(connection, operator_id, status=after.status.value)
            changes = {
                name: [getattr(before, name), getattr(after, name)]
                for name in ("email", "status")
                if getattr(before, name) != getattr(after, name)
            }
            if changes:
                self._record(connection, "operator.set", None, operator_id, **changes)
            if is_another_person or after.status is not OperatorStatus.ACTIVE:
                owner = Owner(PersonKind.OPERATOR, operator_id)
                shut_out(connection, owner, self._clock(), is_another_person=is_another_person)
        return replace(after, has_password=after.has_password and not is_another_person)

    def remove_second_factor(self, kind: PersonKind, person_id: str) -> bool:
        """Take a person's second factor away, who has lost what makes its codes; tell whether there was one.

        Raises:
            ProvisioningError: there is no such account or operator.
        """
        with self._transaction() as connection:
            is_holder = kind is PersonKind.HOLDER
            (_lock_account if is_holder else _lock_operator)(connection, person_id)
            is_removed = forget_second_factor(connection, person_id)
            if is_removed:
                end_pending(connection, Owner(kind, person_id))
                act = f"{'account' if is_holder else 'operator'}.remove_second_factor"
                self._record(connection, act, person_id if is_holder else None, None if is_holder else person_id)
        return is_removed

    def _invite(self, connection: Connection, owner: Owner) -> Invitation:
        now_ms = self._clock()
        token = secret_from(os.urandom(ENTROPY_BYTES))
        digest = digest_of(token)
        assert digest is not None, "it was made just now"
        expires_at_ms = now_ms + INVITATION_DAYS * MILLISECONDS_PER_DAY
        replace_invitation(connection, digest, owner, created_at_ms=now_ms, expires_at_ms=expires_at_ms)
        return Invitation(owner.kind, token, expires_at_ms)


def _operator_email_taken(email: str) -> ConflictError:
    return ConflictError(
        "There is an operator with the email {email} already. Give another.",
        hint="Or find the operator with: tarazu admin operator list",
        email=email,
    )


def _lock_account(connection: Connection, account_id: str) -> Account:
    existing_account(connection, account_id)
    account = lock_account(connection, account_id)
    assert account is not None, "accounts are never deleted"
    return account


def _lock_operator(connection: Connection, operator_id: str) -> Operator:
    operator = lock_operator(connection, operator_id)
    if operator is None:
        raise NotThereError(
            "There is no operator {operator!r}.",
            hint="List them with: tarazu admin operator list",
            operator=operator_id,
        )
    return operator
