"""Sign people in and out, in the panel and on the operators' pages, by passwords, sessions and invitations.

Nothing is remembered here: each request looks into the books, so that what ends there ends at once, in every process.
"""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import StrEnum
from typing import Any, TypeVar

from msgspec import Struct
from sqlalchemy import Connection

from tarazu.domain.attempts import Attempt, Failures, attempt_of, wait_s
from tarazu.domain.calendar import Clock
from tarazu.domain.people import Person, PersonKind
from tarazu.domain.secrets import ENTROPY_BYTES, digest_of, secret_from
from tarazu.domain.sessions import Session, begin_session, seen_again
from tarazu.service.acting import record_act
from tarazu.service.back_office import BackOffice
from tarazu.service.checks import NAME_LENGTH_MAX, checked_email, checked_text
from tarazu.service.passwords import Passwords, PasswordsBusyError, may_be_password
from tarazu.service.people import (
    Login,
    lock_person,
    login_by_email,
    login_of,
    set_language,
    set_name,
    set_password,
)
from tarazu.service.provisioning_errors import ProvisioningError
from tarazu.store.availability import BooksUnavailableError
from tarazu.store.invitations import find_invitation, forget_invitation, take_invitation
from tarazu.store.owners import Owner
from tarazu.store.sessions import (
    end_session,
    end_sessions,
    find_session,
    insert_session,
    see_session,
)
from tarazu.store.sign_in_failures import count_failure, forget_failures, read_failures
from tarazu.store.trail import Via

LANGUAGE_LENGTH_MAX = 35

T = TypeVar("T")


class SignInRefusal(StrEnum):
    """Why somebody is not let in."""

    WRONG = "wrong"
    """Nobody may sign in with this email and this password."""
    TOO_MANY = "too_many"
    """Too many wrong passwords were given; nothing was compared."""
    BUSY = "busy"
    """Too many passwords wait to be compared."""
    INVITATION_ENDED = "invitation_ended"
    """There is no such invitation, or not any more."""
    BAD_PASSWORD = "bad_password"  # noqa: S105 - no password
    """What was to be the new password is too short or too long."""


class SignInError(Exception):
    """Somebody is not let in. `retry_after_s` tells when to try again, where that is known."""

    def __init__(self, reason: SignInRefusal, *, retry_after_s: int | None = None) -> None:
        super().__init__(reason.value)
        self.reason = reason
        self.retry_after_s = retry_after_s


class SigningIn:
    """Who signs in, for one process."""

    def __init__(self, back_office: BackOffice, passwords: Passwords, clock: Clock) -> None:
        self._office = back_office
        self._passwords = passwords
        self._clock = clock

    async def sign_in(self, kind: PersonKind, *, email: str, password: str, address: str) -> str:
        """Begin a session; answer with its secret, for the cookie. `address` is whence the attempt comes.

        Raises:
            SignInError: WRONG, TOO_MANY or BUSY.
        """
        attempt = attempt_of(kind, email=email.strip().lower(), address=address)
        tried = await self._try(attempt, lambda connection: _login_by_email(connection, kind, email), password)
        return await self._settle(tried, lambda connection, person: self._begin(connection, _owner(person)))

    async def person(self, kind: PersonKind, secret: str) -> Person | None:
        """Tell whose session a cookie's secret is; None: it is none of this kind, or it has ended.

        A session that is used lasts on.
        """
        digest = digest_of(secret)
        if digest is None:
            return None
        now_ms = self._clock()

        def look(connection: Connection) -> tuple[Session, Person] | None:
            session = find_session(connection, digest)
            if session is None or session.kind is not kind or not session.is_live(now_ms):
                return None
            login = login_of(connection, Owner(kind, session.person_id))
            return None if login is None else (session, login.person)

        found = await self._office.look(look)
        if found is None:
            return None
        session, person = found
        renewed = seen_again(session, now_ms)
        if renewed is not session:
            with suppress(BooksUnavailableError):  # whoever can still read is not turned away for it
                await self._office.change(lambda connection: see_session(connection, renewed))
        return person

    async def sign_out(self, secret: str) -> None:
        """End a session, if it is one."""
        digest = digest_of(secret)
        if digest is not None:
            await self._office.change(lambda connection: end_session(connection, digest))

    async def invited(self, kind: PersonKind, token: str) -> Person | None:
        """Tell whose invitation this is; None: it is none of this kind, or it has ended."""
        digest = digest_of(token)
        if digest is None:
            return None

        def look(connection: Connection) -> Person | None:
            owner = find_invitation(connection, digest, self._clock())
            login = login_of(connection, owner) if owner is not None and owner.kind is kind else None
            return None if login is None else login.person

        return await self._office.look(look)

    async def accept(self, kind: PersonKind, token: str, password: str) -> str:
        """Follow an invitation: set the password, end all sessions, and begin one, with whose secret this answers.

        Raises:
            SignInError: INVITATION_ENDED, BAD_PASSWORD or BUSY; the invitation is not used up then.
        """
        digest = digest_of(token)
        if digest is None or await self.invited(kind, token) is None:
            raise SignInError(SignInRefusal.INVITATION_ENDED)
        hash_ = await self._hash(password)

        def accept(connection: Connection) -> str:
            now_ms = self._clock()
            invited = find_invitation(connection, digest, now_ms)
            if invited is None:
                raise SignInError(SignInRefusal.INVITATION_ENDED)
            lock_person(connection, invited)
            owner = take_invitation(connection, digest, now_ms)
            login = None if owner is None else login_of(connection, owner)
            if owner is None or login is None:
                raise SignInError(SignInRefusal.INVITATION_ENDED)
            self._set_password(connection, login.person, hash_, keep=None)
            return self._begin(connection, owner)

        return await self._office.change(accept)

    async def change_password(self, person: Person, *, old: str, new: str, keep: str, address: str) -> None:
        """Set another password for somebody who knows the old one. All sessions end but the one with the secret `keep`.

        Raises:
            SignInError: BAD_PASSWORD (`new`), WRONG (`old`), TOO_MANY or BUSY.
        """
        _check_password(new)
        attempt = attempt_of(person.kind, email=person.email, address=address)
        tried = await self._try(attempt, lambda connection: login_of(connection, _owner(person)), old)
        hash_ = await self._hash(new) if tried.is_right else ""
        await self._settle(
            tried, lambda connection, known: self._set_password(connection, known, hash_, keep=digest_of(keep))
        )

    async def rename(self, person: Person, name: str) -> None:
        """Give a person another name; a holder's is that of the account.

        Raises:
            ProvisioningError: it is too long, empty, or not printable.
        """
        name = checked_text("name", name, NAME_LENGTH_MAX)

        def rename(connection: Connection) -> None:
            lock_person(connection, _owner(person))
            login = login_of(connection, _owner(person))
            if login is not None and login.person.name != name:
                set_name(connection, _owner(person), name)
                self._record(connection, "set", person, name=[login.person.name, name])

        await self._office.change(rename)

    async def speak(self, person: Person, language: str) -> None:
        """Remember the language that a person has picked.

        Raises:
            ProvisioningError: it is no code of a language.
        """
        language = checked_text("language", language, LANGUAGE_LENGTH_MAX)
        await self._office.change(lambda connection: set_language(connection, _owner(person), language))

    async def _try(self, attempt: Attempt, find: Callable[[Connection], Login | None], password: str) -> "_Try":
        """Find who it may be and compare the password, where one more attempt is allowed."""

        def look(connection: Connection) -> Login | None:
            now_ms = self._clock()
            _check_wait(attempt, read_failures(connection, attempt.rules), now_ms)
            return find(connection)

        login = await self._office.look(look)
        try:
            is_right = await self._passwords.matches(password, None if login is None else login.password)
        except PasswordsBusyError:
            raise SignInError(SignInRefusal.BUSY) from None
        return _Try(attempt=attempt, find=find, login=login, is_right=is_right)

    async def _settle(self, tried: "_Try", then: Callable[[Connection, Person], T]) -> T:
        """Count a wrong password; or go on with `then`, where the password is still the same.

        The answer is given here alone, after the count: however many try at once, no more learn that they were wrong
        than the rules allow.
        """

        def settle(connection: Connection) -> T | SignInError:
            now_ms = self._clock()
            person = _still_right(connection, tried)
            rules = tried.attempt.rules
            before = count_failure(connection, rules, now_ms) if person is None else read_failures(connection, rules)
            try:
                _check_wait(tried.attempt, before, now_ms)
            except SignInError as error:
                return error  # the transaction is to be committed
            if person is None:
                return SignInError(SignInRefusal.WRONG)
            forget_failures(connection, tried.attempt.own)
            return then(connection, person)

        outcome = await self._office.change(settle)
        if isinstance(outcome, SignInError):
            raise outcome
        return outcome

    async def _hash(self, password: str) -> str:
        _check_password(password)
        try:
            return await self._passwords.hash(password)
        except PasswordsBusyError:
            raise SignInError(SignInRefusal.BUSY) from None

    def _begin(self, connection: Connection, owner: Owner) -> str:
        """Begin a session of a person whose row is locked."""
        secret = secret_from(os.urandom(ENTROPY_BYTES))
        digest = digest_of(secret)
        assert digest is not None, "it was made just now"
        insert_session(connection, begin_session(digest, owner.kind, owner.id, self._clock()))
        return secret

    def _set_password(self, connection: Connection, person: Person, hash_: str, *, keep: bytes | None) -> None:
        """Set the password of a person whose row is locked. What the one before had opened is closed."""
        now_ms = self._clock()
        owner = _owner(person)
        set_password(connection, owner, hash_, now_ms)
        end_sessions(connection, owner, now_ms, keep=keep)
        forget_invitation(connection, owner)
        self._record(connection, "set_password", person)

    def _record(self, connection: Connection, act: str, person: Person, /, **detail: Any) -> None:
        is_holder = person.kind is PersonKind.HOLDER
        record_act(
            connection,
            f"{'account' if is_holder else 'operator'}.{act}",
            person.id if is_holder else None,
            None if is_holder else person.id,
            by=person.email,
            via=Via.HOLDER if is_holder else Via.OPERATOR,
            now_ms=self._clock(),
            detail=detail,
        )


class _Try(Struct, frozen=True, kw_only=True):
    """A password that was given, and who was meant. `find` finds that person again."""

    attempt: Attempt
    find: Callable[[Connection], Login | None]
    login: Login | None
    is_right: bool


def _login_by_email(connection: Connection, kind: PersonKind, email: str) -> Login | None:
    try:
        return login_by_email(connection, kind, checked_email(email))
    except ProvisioningError:  # it is no address, so nobody has it
        return None


def _still_right(connection: Connection, tried: _Try) -> Person | None:
    """Tell whose password it is, if it still is: it may have been changed, or the person been shut out, meanwhile."""
    if tried.login is None or not tried.is_right:
        return None
    lock_person(connection, _owner(tried.login.person))
    login = tried.find(connection)
    return login.person if login is not None and login.password == tried.login.password else None


def _check_wait(attempt: Attempt, failures: Mapping[bytes, Failures], now_ms: int) -> None:
    retry_after_s = wait_s(attempt, failures, now_ms)
    if retry_after_s is not None:
        raise SignInError(SignInRefusal.TOO_MANY, retry_after_s=retry_after_s)


def _check_password(password: str) -> None:
    if not may_be_password(password):
        raise SignInError(SignInRefusal.BAD_PASSWORD)


def _owner(person: Person) -> Owner:
    return Owner(person.kind, person.id)
