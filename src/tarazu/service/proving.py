"""Prove who it is: by a password, and by a code where a second factor is set up. Wrong ones are counted.

What is answered is decided in one transaction with the count: however many try at once, no more learn that they were
wrong than the rules of `domain/attempts.py` allow.
"""

from collections.abc import Callable, Mapping
from typing import TypeVar

from msgspec import Struct
from sqlalchemy import Connection

from tarazu.domain.addresses import place_of
from tarazu.domain.attempts import Attempt, Failures, attempt_of, code_attempt_of, wait_s
from tarazu.domain.calendar import Clock
from tarazu.domain.people import Person, PersonKind
from tarazu.domain.secrets import digest_of
from tarazu.domain.sessions import Session
from tarazu.service.back_office import STRANGERS_IPV6_BITS, BackOffice
from tarazu.service.checks import checked_email
from tarazu.service.passwords import Passwords, PasswordsBusyError, Place, Room, fault_of, may_be_password
from tarazu.service.people import Login, lock_person, login_by_email, login_of
from tarazu.service.provisioning_errors import ProvisioningError
from tarazu.service.sign_in_errors import SignInError, SignInRefusal
from tarazu.service.sign_in_events import email_digest, tell_sign_in_failed, tell_sign_in_limited
from tarazu.store.devices import is_known_device
from tarazu.store.owners import Owner
from tarazu.store.second_factors import find_second_factor, set_second_factor
from tarazu.store.sign_in_failures import count_failure, forget_failures, read_failures

T = TypeVar("T")


class Browser(Struct, frozen=True):
    """What asks to be let in: its address, its name in words, and what its cookie of a known device holds."""

    address: str
    words: str | None = None
    device: str = ""

    def __repr__(self) -> str:
        """Leave the cookie out."""
        return f"Browser({self.address}, {self.words})"


class SignedIn(Struct, frozen=True):
    """A person, and the session in which they are."""

    person: Person
    session: Session

    @property
    def owner(self) -> Owner:
        """The person, as rows name them."""
        return owner_of(self.person)


class Prover:
    """Proves for one process who it is."""

    def __init__(self, office: BackOffice, passwords: Passwords, clock: Clock) -> None:
        self._office = office
        self._passwords = passwords
        self._clock = clock

    async def by_email(
        self,
        kind: PersonKind,
        *,
        email: str,
        password: str,
        browser: Browser,
        then: Callable[[Connection, Person], T | SignInError],
    ) -> T:
        """Compare the password of the person with this email; go on with `then` in the transaction, if it is right.

        Raises:
            SignInError: WRONG, TOO_MANY or BUSY, or what `then` answers with; the transaction is kept all the same.
        """
        written = email.strip().lower()

        def find(connection: Connection) -> Login | None:
            return _login_by_email(connection, kind, email)

        def attempt(connection: Connection, login: Login | None) -> Attempt:
            device = None if login is None else self.known_device(connection, owner_of(login.person), browser)
            return attempt_of(kind, email=written, address=browser.address, device=device)

        return await self._prove(kind, email_digest(email), browser.address, password, find, attempt, then)

    async def again(
        self,
        signed_in: SignedIn,
        *,
        password: str,
        address: str,
        then: Callable[[Connection, Person], T | SignInError],
    ) -> T:
        """Compare the password of a person who is signed in; it is counted by the session, as that of a known device.

        Raises:
            SignInError: as `by_email`, but WRONG_PASSWORD in place of WRONG.
        """
        person = signed_in.person

        def find(connection: Connection) -> Login | None:
            return login_of(connection, signed_in.owner)

        def attempt(_connection: Connection, _login: Login | None) -> Attempt:
            return attempt_of(person.kind, email=person.email, address=address, device=signed_in.session.digest)

        try:
            return await self._prove(person.kind, person.id, address, password, find, attempt, then)
        except SignInError as error:
            if error.reason is SignInRefusal.WRONG:
                raise SignInError(SignInRefusal.WRONG_PASSWORD) from None
            raise

    def by_code(self, connection: Connection, owner: Owner, code: str, device: bytes | None) -> SignInError | None:
        """Use a code of a person's second factor up; None: it is good. The person's row is locked.

        `device` is the digest of the browser, where it is known. An answer that is an error is one to commit.
        """
        now_ms = self._clock()
        attempt = code_attempt_of(owner.kind, owner.id, device=device)
        waits_s = wait_s(attempt, read_failures(connection, attempt.rules), now_ms)
        if waits_s is not None:
            return SignInError(SignInRefusal.TOO_MANY, retry_after_s=waits_s)
        factor = find_second_factor(connection, owner.id)
        left = None if factor is None else factor.used(code, now_ms)
        if left is None:
            count_failure(connection, attempt.rules, now_ms)
            return SignInError(SignInRefusal.WRONG_CODE)
        forget_failures(connection, attempt.own)
        set_second_factor(connection, owner.id, left, now_ms)
        return None

    async def hash(self, password: str, person: Person, place: Place) -> str:
        """Make the hash of a new password of a person.

        Raises:
            SignInError: BAD_PASSWORD or BUSY.
        """
        check_password(password, person.email, person.name)
        try:
            return await self._passwords.hash(password, place)
        except PasswordsBusyError:
            raise SignInError(SignInRefusal.BUSY) from None

    def known_device(self, connection: Connection, owner: Owner, browser: Browser) -> bytes | None:
        """Tell the digest of a browser, where it is known to this person."""
        digest = digest_of(browser.device)
        if digest is not None and is_known_device(connection, digest, owner, self._clock()):
            return digest
        return None

    async def _prove(
        self,
        kind: PersonKind,
        who: str,
        address: str,
        password: str,
        find: Callable[[Connection], Login | None],
        attempt_by: Callable[[Connection, Login | None], Attempt],
        then: Callable[[Connection, Person], T | SignInError],
    ) -> T:
        try:
            tried = await self._try(kind, address, password, find, attempt_by)
            return await self._settle(tried, then)
        except SignInError as error:
            is_limited = error.reason in {SignInRefusal.TOO_MANY, SignInRefusal.BUSY}
            (tell_sign_in_limited if is_limited else tell_sign_in_failed)(kind, who, address, error.reason.value)
            raise

    async def _try(
        self,
        kind: PersonKind,
        address: str,
        password: str,
        find: Callable[[Connection], Login | None],
        attempt_by: Callable[[Connection, Login | None], Attempt],
    ) -> "_Try":
        """Find who it may be and compare the password, where one more attempt is allowed."""

        def look(connection: Connection) -> tuple[Login | None, Attempt]:
            login = find(connection)
            attempt = attempt_by(connection, login)
            _check_wait(attempt, read_failures(connection, attempt.rules), self._clock())
            return login, attempt

        login, attempt = await self._office.look(look)
        is_known = login is not None and attempt.is_known
        place = known_place(login.person) if login and is_known else _strange_place(kind, address)
        try:
            is_right = await self._passwords.matches(password, None if login is None else login.password, place)
        except PasswordsBusyError:
            raise SignInError(SignInRefusal.BUSY) from None
        return _Try(attempt=attempt, find=find, login=login, is_right=is_right)

    async def _settle(self, tried: "_Try", then: Callable[[Connection, Person], T | SignInError]) -> T:
        """Count a wrong password; or go on with `then`, where the password is still the same."""

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


class _Try(Struct, frozen=True, kw_only=True):
    """A password that was given, and who was meant. `find` finds that person again."""

    attempt: Attempt
    find: Callable[[Connection], Login | None]
    login: Login | None
    is_right: bool


def check_password(password: str, *own: str) -> None:
    """Let a password pass that a person with this email and name may choose.

    Raises:
        SignInError: BAD_PASSWORD.
    """
    if not may_be_password(password):
        raise SignInError(SignInRefusal.BAD_PASSWORD)
    fault = fault_of(password, *own)
    if fault is not None:
        raise SignInError(SignInRefusal.BAD_PASSWORD, fault=fault)


def owner_of(person: Person) -> Owner:
    """Name a person as rows do."""
    return Owner(person.kind, person.id)


def known_place(person: Person) -> Place:
    """Tell where a person waits in a browser that is known, or in a session."""
    return Place(Room.KNOWN_OPERATORS if person.kind is PersonKind.OPERATOR else Room.KNOWN_HOLDERS, person.id)


def _strange_place(kind: PersonKind, address: str) -> Place:
    line = place_of(address, ipv6_bits=STRANGERS_IPV6_BITS)
    return Place(Room.OPERATORS if kind is PersonKind.OPERATOR else Room.HOLDERS, line)


def _login_by_email(connection: Connection, kind: PersonKind, email: str) -> Login | None:
    try:
        return login_by_email(connection, kind, checked_email(email))
    except ProvisioningError:  # it is no address, so nobody has it
        return None


def _still_right(connection: Connection, tried: _Try) -> Person | None:
    """Tell whose password it is, if it still is: it may have been changed, or the person been shut out, meanwhile."""
    if tried.login is None or not tried.is_right:
        return None
    lock_person(connection, owner_of(tried.login.person))
    login = tried.find(connection)
    return login.person if login is not None and login.password == tried.login.password else None


def _check_wait(attempt: Attempt, failures: Mapping[bytes, Failures], now_ms: int) -> None:
    retry_after_s = wait_s(attempt, failures, now_ms)
    if retry_after_s is not None:
        raise SignInError(SignInRefusal.TOO_MANY, retry_after_s=retry_after_s)
