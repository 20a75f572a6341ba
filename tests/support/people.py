"""People who sign in, for tests: a holder and an operator in new books, and one process's signing in."""

from collections.abc import Awaitable, Iterator
from contextlib import contextmanager

import pytest
from argon2 import PasswordHasher

from tarazu.domain.people import Person, PersonKind
from tarazu.service.back_office import BackOffice
from tarazu.service.passwords import Passwords
from tarazu.service.people_acts import Invitation
from tarazu.service.provisioning import Provisioning
from tarazu.service.signing_in import SignInError, SigningIn, SignInRefusal
from tests.support.books import Books

KINDS = list(PersonKind)
ADDRESS = "192.0.2.1"
PASSWORD = "correct horse"
OTHER = "battery staple"
WRONG = "wrong horse"
EMAILS = {PersonKind.HOLDER: "ada@example.com", PersonKind.OPERATOR: "grace@example.com"}

CHEAP = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
"""As the real one, in no time."""


class Desk:
    """Signing in on books with one holder, Ada, and one operator, Grace; both are invited."""

    def __init__(self, books: Books, hasher: PasswordHasher = CHEAP) -> None:
        self.books = books
        self.office = BackOffice(books.engine, books.catalogue, books.clock)
        self.passwords = Passwords(hasher)
        self.signing_in = SigningIn(self.office, self.passwords, books.clock)
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
        return await self.signing_in.accept(kind, self.invitations[kind].token, PASSWORD)

    async def sign_in(self, kind: PersonKind, password: str = PASSWORD, *, address: str = ADDRESS) -> str:
        """Sign a person in."""
        return await self.signing_in.sign_in(kind, email=EMAILS[kind], password=password, address=address)

    async def person(self, kind: PersonKind, secret: str) -> Person:
        """Tell whose live session it is; it must be one."""
        person = await self.signing_in.person(kind, secret)
        assert person is not None
        return person

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
