"""People as they sign in, holders of accounts and operators alike: who they are, and what is kept of them."""

from msgspec import Struct
from sqlalchemy import Connection

from tarazu.domain.accounts import Account, AccountStatus
from tarazu.domain.people import Operator, OperatorStatus, Person, PersonKind
from tarazu.store.accounts import find_account, find_account_by_email, lock_account, rename_account
from tarazu.store.devices import forget_devices
from tarazu.store.invitations import forget_invitation
from tarazu.store.logins import find_login, forget_login, set_login_language, set_login_password
from tarazu.store.operators import (
    find_operator,
    find_operator_by_email,
    lock_operator,
    operator_password,
    update_operator,
)
from tarazu.store.owners import Owner
from tarazu.store.pending_sign_ins import end_pending
from tarazu.store.second_factors import forget_second_factor, has_second_factor
from tarazu.store.sessions import end_sessions


class Login(Struct, frozen=True):
    """A person who may sign in, and the hash of the password; None: it has not been chosen yet."""

    person: Person
    password: str | None

    def __repr__(self) -> str:
        """Name the person without the hash."""
        return f"Login({self.person.id})"


def login_by_email(connection: Connection, kind: PersonKind, email: str) -> Login | None:
    """Find who signs in with this email; None: nobody, or one who may not."""
    if kind is PersonKind.HOLDER:
        return _login_of_holder(connection, find_account_by_email(connection, email))
    return _login_of_operator(connection, find_operator_by_email(connection, email))


def login_of(connection: Connection, owner: Owner) -> Login | None:
    """Find a person by id; None: there is none, or one who may not sign in."""
    if owner.kind is PersonKind.HOLDER:
        return _login_of_holder(connection, find_account(connection, owner.id))
    return _login_of_operator(connection, find_operator(connection, owner.id))


def lock_person(connection: Connection, owner: Owner) -> None:
    """Let nobody else change a person, or whether they may sign in, until the transaction ends."""
    lock = lock_account if owner.kind is PersonKind.HOLDER else lock_operator
    lock(connection, owner.id)


def set_password(connection: Connection, owner: Owner, hash_: str, now_ms: int) -> None:
    """Set the hash of a person's password."""
    if owner.kind is PersonKind.HOLDER:
        set_login_password(connection, owner.id, hash_, now_ms)
    else:
        update_operator(connection, owner.id, password=hash_)


def shut_out(
    connection: Connection, owner: Owner, now_ms: int, *, is_another_person: bool = False, keep: bytes | None = None
) -> None:
    """End all that opens the pages to a person whose row is locked, since there may be another person behind it.

    Sessions, an invitation, sign-ins that wait for their code, and known browsers (but the one with the digest `keep`)
    end. With `is_another_person`, as after a change of the email, password and second factor are taken away too.
    """
    end_sessions(connection, owner, now_ms)
    end_pending(connection, owner)
    forget_invitation(connection, owner)
    forget_devices(connection, owner, keep=keep)
    if is_another_person:
        forget_password(connection, owner)
        forget_second_factor(connection, owner.id)


def forget_password(connection: Connection, owner: Owner) -> None:
    """Take a person's password away; an invitation lets them choose another."""
    if owner.kind is PersonKind.HOLDER:
        forget_login(connection, owner.id)
    else:
        update_operator(connection, owner.id, password=None)


def set_name(connection: Connection, owner: Owner, name: str) -> None:
    """Set a person's name: for a holder that is the account's."""
    if owner.kind is PersonKind.HOLDER:
        rename_account(connection, owner.id, name)
    else:
        update_operator(connection, owner.id, name=name)


def set_language(connection: Connection, owner: Owner, language: str) -> None:
    """Set the language that a person has picked."""
    if owner.kind is PersonKind.HOLDER:
        set_login_language(connection, owner.id, language)
    else:
        update_operator(connection, owner.id, language=language)


def _login_of_holder(connection: Connection, account: Account | None) -> Login | None:
    if account is None or account.email is None or account.status is AccountStatus.BLOCKED:
        return None
    login = find_login(connection, account.id)
    person = Person(
        kind=PersonKind.HOLDER,
        id=account.id,
        name=account.name,
        email=account.email,
        language=None if login is None else login.language,
        has_second_factor=has_second_factor(connection, account.id),
        account=account,
    )
    return Login(person, None if login is None else login.password)


def _login_of_operator(connection: Connection, operator: Operator | None) -> Login | None:
    if operator is None or operator.status is not OperatorStatus.ACTIVE:
        return None
    person = Person(
        kind=PersonKind.OPERATOR,
        id=operator.id,
        name=operator.name,
        email=operator.email,
        language=operator.language,
        has_second_factor=has_second_factor(connection, operator.id),
    )
    return Login(person, operator_password(connection, operator.id))
