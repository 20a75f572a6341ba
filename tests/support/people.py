"""People who sign in, for tests: a holder and an operator in new books, and one process's signing in."""

from collections.abc import Awaitable, Iterator
from contextlib import contextmanager

import pytest
from argon2 import PasswordHasher

from tarazu.domain.accounts import AccountStatus
from tarazu.domain.people import OperatorStatus, Person, PersonKind
from tarazu.domain.second_factor import code_at, secret_text, step_at
from tarazu.service.back_office import BackOffice
from tarazu.service.own_access import OwnAccess
from tarazu.service.passwords import Passwords
from tarazu.service.people_acts import Invitation
from tarazu.service.proving import Browser, Prover, SignedIn
from tarazu.service.provisioning import Provisioning
from tarazu.service.sign_in_errors import SignInError, SignInRefusal
from tarazu.service.signing_in import Entered, Halfway, SigningIn
from tests.support.books import Books

KINDS = list(PersonKind)
ADDRESS = "192.0.2.1"
PASSWORD = "correct horse"
OTHER = "battery staple"
WRONG = "wrong horse"
EMAILS = {PersonKind.HOLDER: "ada@example.com", PersonKind.OPERATOR: "grace@example.com"}

SECRET = b"12345678901234567890"
"""Of second factors."""

CHEAP = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
"""As the real one, in no time."""


class Desk:
    """Signing in on books with one holder, Ada, and one operator, Grace; both are invited."""

    def __init__(self, books: Books, hasher: PasswordHasher = CHEAP) -> None:
        self.books = books
        self.office = BackOffice(books.engine, books.catalogue, books.clock)
        self.passwords = Passwords(hasher)
        prover = Prover(self.office, self.passwords, books.clock)
        self.signing_in = SigningIn(self.office, prover, books.clock)
        self.own_access = OwnAccess(self.office, prover, books.clock)
        self.provisioning = Provisioning(books.engine, books.catalogue, books.clock, by="tests")
        account = self.provisioning.create_account(name="Ada", email=EMAILS[PersonKind.HOLDER])
        operator, invitation = self.provisioning.create_operator(name="Grace", email=EMAILS[PersonKind.OPERATOR])
        self.ids = {PersonKind.HOLDER: account.id, PersonKind.OPERATOR: operator.id}
        self.invitations = {
            PersonKind.HOLDER: self.provisioning.invite_holder(account.id),
            PersonKind.OPERATOR: invitation,
        }

    async def joined(self, kind: PersonKind) -> str:
        """Let a person follow the invitation; answer with the cookie's secret."""
        return await self.accept(kind, self.invitations[kind].token)

    async def accept(self, kind: PersonKind, token: str, password: str = PASSWORD) -> str:
        """Follow an invitation, where no code is asked for; answer with the cookie's secret."""
        entry = await self.signing_in.accept(kind, token, password, browser=Browser(ADDRESS))
        assert isinstance(entry, Entered)
        return entry.secret

    async def sign_in(self, kind: PersonKind, password: str = PASSWORD, **given: str) -> str:
        """Sign a person in, where no code is asked for; answer with the cookie's secret."""
        return (await self.enter(kind, password, **given)).secret

    async def enter(self, kind: PersonKind, password: str = PASSWORD, **given: str) -> Entered:
        """Sign a person in, where no code is asked for."""
        entry = await self.try_password(kind, password, **given)
        assert isinstance(entry, Entered)
        return entry

    async def try_password(
        self,
        kind: PersonKind,
        password: str = PASSWORD,
        *,
        address: str = ADDRESS,
        email: str | None = None,
        device: str = "",
    ) -> Entered | Halfway:
        """Give email and password at the door, from an address, in a browser that may be known."""
        browser = Browser(address, "Firefox, Linux", device)
        email = EMAILS[kind] if email is None else email
        return await self.signing_in.sign_in(kind, email=email, password=password, browser=browser)

    async def with_second_factor(self, kind: PersonKind, secret: str) -> tuple[str, ...]:
        """Set a second factor up, with SECRET, in the session with this secret; answer with the recovery codes."""
        signed_in = await self.signed_in(kind, secret)
        return await self.own_access.set_up_second_factor(
            signed_in, secret_text(SECRET), self.code(), browser=Browser(ADDRESS)
        )

    def code(self, later: int = 0) -> str:
        """Make the code of now, or of so many steps later."""
        return code_at(SECRET, step_at(self.books.clock.now_ms) + later)

    async def signed_in(self, kind: PersonKind, secret: str) -> SignedIn:
        """Tell whose live session it is, and which; it must be one."""
        signed_in = await self.signing_in.signed_in(kind, secret)
        assert signed_in is not None
        return signed_in

    async def person(self, kind: PersonKind, secret: str) -> Person:
        """Tell whose live session it is; it must be one."""
        return (await self.signed_in(kind, secret)).person

    def shut_out(self, kind: PersonKind) -> None:
        """Take the pages from a person, and open them again."""
        of, id_ = self.provisioning, self.ids[kind]
        if kind is PersonKind.HOLDER:
            for status in (AccountStatus.BLOCKED, AccountStatus.ACTIVE):
                of.set_account(id_, status=status)
        else:
            for each in (OperatorStatus.INACTIVE, OperatorStatus.ACTIVE):
                of.set_operator(id_, status=each)

    def invite(self, kind: PersonKind) -> Invitation:
        """Invite a person anew."""
        of = self.provisioning
        return of.invite_holder(self.ids[kind]) if kind is PersonKind.HOLDER else of.invite_operator(self.ids[kind])

    def sessions(self) -> int:
        """Count the sessions in the books."""
        ((number,),) = self.books.rows("SELECT count(*) FROM sessions")
        return int(number)


@contextmanager
def open_desk(books: Books, hasher: PasswordHasher = CHEAP) -> Iterator[Desk]:
    """Make a desk over new books."""
    desk = Desk(books, hasher)
    yield desk
    desk.passwords.close()
    desk.office.close()


async def refused(attempt: Awaitable[object]) -> tuple[SignInRefusal, int | None]:
    """Await what must be refused; answer with why, and how long to wait."""
    with pytest.raises(SignInError) as found:
        await attempt
    return found.value.reason, found.value.retry_after_s
