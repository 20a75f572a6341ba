"""What people who are signed in change of themselves: password, second factor, sessions, name and language."""

import os
from unicodedata import normalize

from sqlalchemy import Connection

from tarazu.domain.calendar import Clock
from tarazu.domain.password_rules import PasswordFault
from tarazu.domain.people import Person, PersonKind
from tarazu.domain.second_factor import RECOVERY_CODES, RECOVERY_ENTROPY_BYTES, begin, recovery_codes, secret_of
from tarazu.domain.sessions import Session
from tarazu.service.back_office import BackOffice
from tarazu.service.checks import NAME_LENGTH_MAX, checked_text
from tarazu.service.pace import require_pace
from tarazu.service.people import lock_person, login_of, set_language, set_name, set_password, shut_out
from tarazu.service.personal_acts import record_personal_act
from tarazu.service.proving import Browser, Prover, SignedIn, check_password, known_place, owner_of
from tarazu.service.provisioning_errors import ConflictError
from tarazu.service.sign_in_errors import SignInError, SignInRefusal
from tarazu.service.sign_in_events import tell_confirmed, tell_sessions_ended, tell_sign_in_failed
from tarazu.service.signing_in import begin as begin_session
from tarazu.store.pending_sign_ins import end_pending
from tarazu.store.second_factors import forget_second_factor, has_second_factor, set_second_factor
from tarazu.store.sessions import confirm_session, end_session, end_sessions, list_sessions

LANGUAGE_LENGTH_MAX = 35
IN_SESSION = b"in a session of "
"""What wrong codes are counted by that are given in any session of a person, in place of a known browser."""
OWN_CHANGES_HOURLY_MAX = 30
"""Of one holder and one kind: each leaves an act in the trail, for good."""


class OwnAccess:
    """A person's own settings, for one process."""

    def __init__(self, back_office: BackOffice, prover: Prover, clock: Clock) -> None:
        self._office = back_office
        self._prover = prover
        self._clock = clock

    async def confirm(self, signed_in: SignedIn, *, password: str, code: str, browser: Browser) -> None:
        """Let a person prove again who it is, before what matters most; that is good for a while in this session.

        Raises:
            SignInError: WRONG_PASSWORD, WRONG_CODE, TOO_MANY or BUSY.
        """
        digest = signed_in.session.digest

        def then(connection: Connection, person: Person) -> SignInError | None:
            error = self._code_error(connection, person, code)
            if error is None:
                confirm_session(connection, digest, self._clock())
            return error

        await self._prover.again(signed_in, password=password, address=browser.address, then=then)
        tell_confirmed(signed_in.person.kind, signed_in.person.id, browser.address)

    async def change_password(
        self, signed_in: SignedIn, *, old: str, new: str, code: str = "", browser: Browser
    ) -> str:
        """Set another password for a person who knows the old one and, with a second factor, gives a code.

        All sessions end, and one begins, with whose secret this answers. Of the known browsers only this one stays.

        Raises:
            SignInError: BAD_PASSWORD (`new`), WRONG_PASSWORD (`old`), WRONG_CODE, TOO_MANY or BUSY.
            ConflictError: a holder has changed it too often.
        """
        person = signed_in.person
        check_password(new, person.email, person.name)
        if normalize("NFKC", new) == normalize("NFKC", old):
            raise SignInError(SignInRefusal.BAD_PASSWORD, fault=PasswordFault.SAME)

        def then(connection: Connection, person: Person) -> SignInError | None:
            return self._code_error(connection, person, code)

        await self._prover.again(signed_in, password=old, address=browser.address, then=then)
        hash_ = await self._prover.hash(new, person, known_place(person))

        def change(connection: Connection) -> str | SignInError:
            now_ms, owner = self._clock(), signed_in.owner
            lock_person(connection, owner)
            is_in = any(each.digest == signed_in.session.digest for each in list_sessions(connection, owner, now_ms))
            if login_of(connection, owner) is None or not is_in:  # it was ended meanwhile
                return SignInError(SignInRefusal.WRONG)
            self._require_pace(connection, person, "set_password")
            keep = self._prover.known_device(connection, owner, browser)
            set_password(connection, owner, hash_, now_ms)
            shut_out(connection, owner, now_ms, keep=keep)
            detail = {"address": browser.address, "browser": browser.words}
            record_personal_act(connection, "set_password", person, now_ms, **detail)
            return begin_session(connection, owner, browser, now_ms)

        outcome = await self._office.change(change)
        if isinstance(outcome, SignInError):
            raise outcome
        return outcome

    async def set_up_second_factor(
        self, signed_in: SignedIn, secret_text: str, code: str, *, browser: Browser
    ) -> tuple[str, ...]:
        """Set a second factor up by its first code; answer with the recovery codes, which are seen this once.

        All other sessions end, in which nobody has given a code.

        Raises:
            SignInError: WRONG_CODE.
            ConflictError: there is one already, or a holder has set one up too often.
        """
        secret, codes = secret_of(secret_text), recovery_codes(os.urandom(RECOVERY_CODES * RECOVERY_ENTROPY_BYTES))
        factor = None if secret is None else begin(secret, code, codes, self._clock())
        if factor is None:
            person = signed_in.person
            tell_sign_in_failed(person.kind, person.id, browser.address, SignInRefusal.WRONG_CODE.value)
            raise SignInError(SignInRefusal.WRONG_CODE)

        def set_up(connection: Connection) -> None:
            now_ms, owner = self._clock(), signed_in.owner
            lock_person(connection, owner)
            if has_second_factor(connection, owner.id):
                raise ConflictError("There is a second factor already. Turn it off first.")
            self._require_pace(connection, signed_in.person, "set_second_factor")
            set_second_factor(connection, owner.id, factor, now_ms)
            end_sessions(connection, owner, now_ms, keep=signed_in.session.digest)
            end_pending(connection, owner)
            record_personal_act(connection, "set_second_factor", signed_in.person, now_ms)

        await self._office.change(set_up)
        return codes

    async def remove_second_factor(self, signed_in: SignedIn, *, password: str, code: str, browser: Browser) -> None:
        """Turn the second factor off, for a person who gives the password and a code once more.

        Raises:
            SignInError: WRONG_PASSWORD, WRONG_CODE, TOO_MANY or BUSY.
        """
        if not signed_in.person.has_second_factor:
            return

        def then(connection: Connection, person: Person) -> SignInError | None:
            error = self._code_error(connection, person, code)
            if error is None and forget_second_factor(connection, person.id):
                record_personal_act(connection, "remove_second_factor", person, self._clock())
            return error

        await self._prover.again(signed_in, password=password, address=browser.address, then=then)

    async def sessions(self, signed_in: SignedIn) -> list[Session]:
        """List the person's sessions, the one that was seen last first."""
        return await self._office.look(lambda connection: list_sessions(connection, signed_in.owner, self._clock()))

    async def end_session(self, signed_in: SignedIn, digest: bytes, *, browser: Browser) -> None:
        """End one of the person's sessions, if it is one."""

        def end(connection: Connection) -> int:
            lock_person(connection, signed_in.owner)
            own = list_sessions(connection, signed_in.owner, self._clock())
            ended = any(each.digest == digest for each in own) and end_session(connection, digest)
            return self._ended(connection, signed_in.person, int(ended))

        person = signed_in.person
        tell_sessions_ended(person.kind, person.id, browser.address, await self._office.change(end))

    async def end_other_sessions(self, signed_in: SignedIn, *, browser: Browser) -> None:
        """End all sessions of the person but this one."""

        def end(connection: Connection) -> int:
            lock_person(connection, signed_in.owner)
            ended = end_sessions(connection, signed_in.owner, self._clock(), keep=signed_in.session.digest)
            return self._ended(connection, signed_in.person, ended)

        person = signed_in.person
        tell_sessions_ended(person.kind, person.id, browser.address, await self._office.change(end))

    async def rename(self, person: Person, name: str) -> None:
        """Give a person another name; a holder's is that of the account.

        Raises:
            ProvisioningError: it is too long, empty, or not printable, or a holder's was changed too often.
        """
        name = checked_text("name", name, NAME_LENGTH_MAX)
        owner = owner_of(person)

        def rename(connection: Connection) -> None:
            lock_person(connection, owner)
            login = login_of(connection, owner)
            if login is not None and login.person.name != name:
                self._require_pace(connection, person, "set")
                set_name(connection, owner, name)
                record_personal_act(connection, "set", person, self._clock(), name=[login.person.name, name])

        await self._office.change(rename)

    async def speak(self, person: Person, language: str) -> None:
        """Remember the language that a person has picked.

        Raises:
            ProvisioningError: it is no code of a language.
        """
        language = checked_text("language", language, LANGUAGE_LENGTH_MAX)
        await self._office.change(lambda connection: set_language(connection, owner_of(person), language))

    def _code_error(self, connection: Connection, person: Person, code: str) -> SignInError | None:
        """Use a code up where there is a second factor. In sessions all of a person are counted together."""
        if not person.has_second_factor:
            return None
        return self._prover.by_code(connection, owner_of(person), code, IN_SESSION + person.id.encode())

    def _require_pace(self, connection: Connection, person: Person, act: str) -> None:
        if person.kind is PersonKind.HOLDER:
            names, now_ms = [f"account.{act}"], self._clock()
            require_pace(connection, person.id, names, hourly_max=OWN_CHANGES_HOURLY_MAX, now_ms=now_ms)

    def _ended(self, connection: Connection, person: Person, sessions: int) -> int:
        if sessions:
            record_personal_act(connection, "end_sessions", person, self._clock(), sessions=sessions)
        return sessions
