"""Sign people in and out, in the panel and on the operators' pages, by passwords, codes, sessions and invitations.

Nothing is remembered here: each request looks into the books, so that what ends there ends at once, in every process.
"""

import os
from contextlib import suppress

from msgspec import Struct
from sqlalchemy import Connection

from tarazu.domain.calendar import MILLISECONDS_PER_SECOND, Clock
from tarazu.domain.people import Person, PersonKind
from tarazu.domain.secrets import ENTROPY_BYTES, digest_of, secret_from
from tarazu.domain.sessions import begin_session, seen_again
from tarazu.service.back_office import BackOffice
from tarazu.service.passwords import Place, Room
from tarazu.service.people import lock_person, login_of, set_password, shut_out
from tarazu.service.personal_acts import record_personal_act
from tarazu.service.proving import Browser, Prover, SignedIn, owner_of
from tarazu.service.sign_in_errors import SignInError, SignInRefusal
from tarazu.service.sign_in_events import (
    tell_sign_in_failed,
    tell_sign_in_limited,
    tell_signed_in,
    tell_signed_out,
)
from tarazu.store.availability import BooksUnavailableError
from tarazu.store.devices import insert_device, renew_device
from tarazu.store.invitations import find_invitation, take_invitation
from tarazu.store.operators import has_operators
from tarazu.store.owners import Owner
from tarazu.store.pending_sign_ins import (
    PENDING_MAX,
    PENDING_MS,
    count_pending,
    end_pending,
    find_pending,
    insert_pending,
)
from tarazu.store.sessions import end_session, find_session, insert_session, see_session


class Entered(Struct, frozen=True):
    """A session that has begun: its secret, and that of the browser, which is known from now on, for cookies."""

    person_id: str
    secret: str
    device: str

    def __repr__(self) -> str:
        """Leave the secrets out."""
        return f"Entered({self.person_id})"


class Halfway(Struct, frozen=True):
    """The password was right, and a code of the second factor is asked for with this ticket."""

    ticket: str

    def __repr__(self) -> str:
        """Leave the ticket out."""
        return "Halfway()"


class SigningIn:
    """Who signs in, for one process."""

    def __init__(self, back_office: BackOffice, prover: Prover, clock: Clock) -> None:
        self._office = back_office
        self._prover = prover
        self._clock = clock

    async def is_nobody_there(self) -> bool:
        """Tell whether the first operator is still to be made."""
        return not await self._office.look(has_operators)

    async def sign_in(self, kind: PersonKind, *, email: str, password: str, browser: Browser) -> Entered | Halfway:
        """Begin a session, or ask for a code first.

        Raises:
            SignInError: WRONG, TOO_MANY or BUSY.
        """

        def then(connection: Connection, person: Person) -> Entered | Halfway:
            return self._enter(connection, person, browser)

        entry: Entered | Halfway = await self._prover.by_email(
            kind, email=email, password=password, browser=browser, then=then
        )
        return _told(kind, entry, browser)

    async def give_code(self, kind: PersonKind, ticket: str, code: str, *, browser: Browser) -> Entered:
        """Begin a session by a code of the second factor, after the password.

        Raises:
            SignInError: WRONG_CODE, TOO_MANY, or CODE_TOO_LATE.
        """
        digest = digest_of(ticket)

        def give(connection: Connection) -> Entered | SignInError:
            owner = None if digest is None else find_pending(connection, digest, self._clock())
            if digest is None or owner is None or owner.kind is not kind:
                return SignInError(SignInRefusal.CODE_TOO_LATE)
            lock_person(connection, owner)
            login = login_of(connection, owner)
            if login is None or find_pending(connection, digest, self._clock()) is None:
                return SignInError(SignInRefusal.CODE_TOO_LATE)
            device = self._prover.known_device(connection, owner, browser)
            error = self._prover.by_code(connection, owner, code, device)
            if error is not None:
                is_limited = error.reason is SignInRefusal.TOO_MANY
                tell = tell_sign_in_limited if is_limited else tell_sign_in_failed
                tell(kind, owner.id, browser.address, error.reason.value)
                return error
            end_pending(connection, owner)
            return self._begin(connection, login.person, browser)

        outcome = await self._office.change(give)
        if isinstance(outcome, SignInError):
            raise outcome
        tell_signed_in(kind, outcome.person_id, browser.address)
        return outcome

    async def signed_in(self, kind: PersonKind, secret: str) -> SignedIn | None:
        """Tell whose session a cookie's secret is; None: it is none of this kind, or it has ended.

        A session that is used lasts on.
        """
        digest = digest_of(secret)
        if digest is None:
            return None
        now_ms = self._clock()

        def look(connection: Connection) -> SignedIn | None:
            session = find_session(connection, digest)
            if session is None or session.kind is not kind or not session.is_live(now_ms):
                return None
            login = login_of(connection, Owner(kind, session.person_id))
            return None if login is None else SignedIn(login.person, session)

        found = await self._office.look(look)
        if found is None:
            return None
        renewed = seen_again(found.session, now_ms)
        if renewed is not found.session:
            with suppress(BooksUnavailableError):  # a person who can still read is not turned away for it
                await self._office.change(lambda connection: see_session(connection, renewed))
        return found

    async def sign_out(self, signed_in: SignedIn, *, browser: Browser) -> None:
        """End a session."""
        person = signed_in.person

        def end(connection: Connection) -> None:
            lock_person(connection, signed_in.owner)
            if end_session(connection, signed_in.session.digest):
                record_personal_act(connection, "end_sessions", person, self._clock(), sessions=1)

        await self._office.change(end)
        tell_signed_out(person.kind, person.id, browser.address)

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

    async def accept(self, kind: PersonKind, token: str, password: str, *, browser: Browser) -> Entered | Halfway:
        """Follow an invitation: set the password, end all sessions, and begin one, or ask for a code first.

        Raises:
            SignInError: INVITATION_ENDED, BAD_PASSWORD or BUSY; the invitation is not used up then.
        """
        digest = digest_of(token)
        person = await self.invited(kind, token)
        if digest is None or person is None:
            raise SignInError(SignInRefusal.INVITATION_ENDED)
        hash_ = await self._prover.hash(password, person, Place(Room.INVITED, person.id))

        def accept(connection: Connection) -> Entered | Halfway:
            now_ms = self._clock()
            invited = find_invitation(connection, digest, now_ms)
            if invited is None:
                raise SignInError(SignInRefusal.INVITATION_ENDED)
            lock_person(connection, invited)
            owner = take_invitation(connection, digest, now_ms)
            login = None if owner is None else login_of(connection, owner)
            if owner is None or login is None:
                raise SignInError(SignInRefusal.INVITATION_ENDED)
            set_password(connection, owner, hash_, now_ms)
            shut_out(connection, owner, now_ms)
            detail = {"address": browser.address, "browser": browser.words}
            record_personal_act(connection, "set_password", login.person, now_ms, **detail)
            return self._enter(connection, login.person, browser)

        return _told(kind, await self._office.change(accept), browser)

    def _enter(self, connection: Connection, person: Person, browser: Browser) -> Entered | Halfway:
        """Go on after the right password of a person whose row is locked.

        Of those who wait for a code strangers push nobody out: whoever has the password alone must not keep the person
        from giving the code.
        """
        if not person.has_second_factor:
            return self._begin(connection, person, browser)
        now_ms, owner = self._clock(), owner_of(person)
        is_known = self._prover.known_device(connection, owner, browser) is not None
        if not is_known and count_pending(connection, owner, now_ms) >= PENDING_MAX:
            raise SignInError(SignInRefusal.TOO_MANY, retry_after_s=PENDING_MS // MILLISECONDS_PER_SECOND)
        ticket, digest = new_secret()
        insert_pending(connection, digest, owner, now_ms)
        return Halfway(ticket)

    def _begin(self, connection: Connection, person: Person, browser: Browser) -> Entered:
        """Begin a session of a person whose row is locked, in a browser that is known from now on."""
        now_ms, owner = self._clock(), owner_of(person)
        known = self._prover.known_device(connection, owner, browser)
        device = browser.device
        if known is not None:
            renew_device(connection, known, now_ms)
        else:
            device, digest = new_secret()
            insert_device(connection, digest, owner, now_ms)
        secret = begin(connection, owner, browser, now_ms)
        record_personal_act(connection, "sign_in", person, now_ms, address=browser.address, browser=browser.words)
        return Entered(person.id, secret, device)


def begin(connection: Connection, owner: Owner, browser: Browser, now_ms: int) -> str:
    """Begin a session of a person whose row is locked; answer with its secret."""
    secret, digest = new_secret()
    session = begin_session(digest, owner.kind, owner.id, now_ms, address=browser.address, browser=browser.words)
    insert_session(connection, session)
    return secret


def new_secret() -> tuple[str, bytes]:
    """Make a secret, and the digest by which it is found."""
    secret = secret_from(os.urandom(ENTROPY_BYTES))
    digest = digest_of(secret)
    assert digest is not None, "it was made just now"
    return secret, digest


def _told(kind: PersonKind, entry: Entered | Halfway, browser: Browser) -> Entered | Halfway:
    if isinstance(entry, Entered):
        tell_signed_in(kind, entry.person_id, browser.address)
    return entry
