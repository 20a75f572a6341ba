"""Signing in: by password, for as long as a session lasts; by invitation, once."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Literal
from unittest.mock import patch

import pytest
from argon2 import PasswordHasher
from sqlalchemy import text
from structlog.testing import capture_logs

from tarazu.domain.accounts import AccountStatus
from tarazu.domain.attempts import BY_ADDRESS, BY_CODE, BY_DEVICE, BY_EMAIL, BY_EMAIL_AND_ADDRESS
from tarazu.domain.password_rules import PasswordFault
from tarazu.domain.people import OperatorStatus, PersonKind
from tarazu.domain.second_factor import secret_text
from tarazu.domain.secrets import digest_of
from tarazu.domain.sessions import CONFIRMED_MS, LIFETIMES, SEEN_EVERY_MS
from tarazu.service.passwords import OF_LINE_MAX
from tarazu.service.proving import Browser
from tarazu.service.provisioning_errors import ConflictError, ProvisioningError
from tarazu.service.sign_in_errors import SignInError, SignInRefusal
from tarazu.service.signing_in import Entered, Halfway
from tarazu.store.pending_sign_ins import PENDING_MAX, PENDING_MS
from tarazu.store.schema import metadata
from tarazu.store.sessions import SESSIONS_MAX
from tarazu.store.trail import Via
from tests.support.books import Books, sqlite_only
from tests.support.people import ADDRESS, EMAILS, KINDS, OTHER, PASSWORD, SECRET, WRONG, Desk, open_desk, refused

pytestmark = pytest.mark.both_stores

PACE_S = BY_EMAIL_AND_ADDRESS.pace_ms // 1_000

of_both = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture
def desk(books: Books) -> Iterator[Desk]:
    """Make a desk over them."""
    with open_desk(books) as desk:
        yield desk


def other(kind: PersonKind) -> PersonKind:
    """Tell the other world."""
    return next(each for each in KINDS if each is not kind)


@of_both
def test_whoever_has_followed_the_invitation_is_signed_in(desk: Desk, kind: PersonKind) -> None:
    """The session is that person's, in that world alone."""

    async def run() -> None:
        secret = await desk.joined(kind)
        person = await desk.person(kind, secret)
        assert (person.kind, person.id, person.email, person.language) == (kind, desk.ids[kind], EMAILS[kind], None)
        assert await desk.signing_in.signed_in(other(kind), secret) is None

    asyncio.run(run())


@of_both
def test_email_and_password_begin_a_session(desk: Desk, kind: PersonKind) -> None:
    """The email's case and the spaces around it do not matter; the session is another one than before."""

    async def run() -> None:
        first = await desk.joined(kind)
        email = f" {EMAILS[kind].upper()} "
        second = await desk.sign_in(kind, PASSWORD, email=email, address=ADDRESS)
        assert second != first
        assert await desk.person(kind, second) == await desk.person(kind, first)

    asyncio.run(run())


@of_both
@pytest.mark.parametrize("email", ["nobody@example.com", "no address", "", "a\0b@example.com", "\ud83d@example.com"])
def test_a_wrong_password_and_an_unknown_email_are_one_answer(desk: Desk, kind: PersonKind, email: str) -> None:
    """Nobody learns who is there."""

    async def run() -> None:
        await desk.joined(kind)
        wrong = await refused(desk.sign_in(kind, WRONG))
        unknown = await refused(desk.sign_in(kind, PASSWORD, email=email, address=ADDRESS))
        assert wrong == unknown == (SignInRefusal.WRONG, None)

    asyncio.run(run())


@of_both
def test_nobody_signs_in_on_the_other_side(desk: Desk, kind: PersonKind) -> None:
    """An operator has no account by being one, and a holder no operator's pages."""

    async def run() -> None:
        await desk.joined(kind)
        elsewhere = desk.sign_in(other(kind), PASSWORD, email=EMAILS[kind], address=ADDRESS)
        assert await refused(elsewhere) == (SignInRefusal.WRONG, None)

    asyncio.run(run())


@of_both
def test_nobody_signs_in_before_the_invitation_was_followed(desk: Desk, kind: PersonKind) -> None:
    """There is no password yet, not even an empty one."""
    assert asyncio.run(refused(desk.sign_in(kind, ""))) == (SignInRefusal.WRONG, None)


@pytest.mark.parametrize("status", AccountStatus)
def test_a_blocked_holder_alone_is_shut_out_whatever_the_account_may_buy(desk: Desk, status: AccountStatus) -> None:
    """Whoever is not served may look all the same; who is blocked is shut out for good, but for the password."""
    kind = PersonKind.HOLDER

    async def run() -> None:
        secret = await desk.joined(kind)
        invitation = desk.invite(kind)
        desk.provisioning.set_account(desk.ids[kind], status=status)
        is_in = await desk.signing_in.signed_in(kind, secret) is not None
        assert is_in is (status is not AccountStatus.BLOCKED)
        assert (await desk.signing_in.invited(kind, invitation.token) is not None) is is_in
        if is_in:
            await desk.sign_in(kind)
        else:
            assert await refused(desk.sign_in(kind)) == (SignInRefusal.WRONG, None)
            followed = desk.accept(kind, invitation.token, OTHER)
            assert await refused(followed) == (SignInRefusal.INVITATION_ENDED, None)
        desk.provisioning.set_account(desk.ids[kind], status=AccountStatus.ACTIVE)
        assert (await desk.signing_in.signed_in(kind, secret) is not None) is is_in
        assert (await desk.signing_in.invited(kind, invitation.token) is not None) is is_in
        await desk.sign_in(kind)

    asyncio.run(run())


def test_an_inactive_operator_is_shut_out_for_good(desk: Desk) -> None:
    """Sessions and invitation have ended; once active again, the password opens."""
    kind = PersonKind.OPERATOR

    async def run() -> None:
        secret = await desk.joined(kind)
        invitation = desk.invite(kind)
        desk.provisioning.set_operator(desk.ids[kind], status=OperatorStatus.INACTIVE)
        assert await refused(desk.sign_in(kind)) == (SignInRefusal.WRONG, None)
        desk.provisioning.set_operator(desk.ids[kind], status=OperatorStatus.ACTIVE)
        assert await desk.signing_in.signed_in(kind, secret) is None
        assert await desk.signing_in.invited(kind, invitation.token) is None
        await desk.sign_in(kind)

    asyncio.run(run())


@of_both
@pytest.mark.parametrize("secret", ["", "x", "0" * 43, "0" * 42 + "\n", "ß" * 43])
def test_what_is_no_secret_opens_nothing(desk: Desk, kind: PersonKind, secret: str) -> None:
    """It is nobody's session and nobody's invitation."""

    async def run() -> None:
        assert await desk.signing_in.signed_in(kind, secret) is None
        assert await desk.signing_in.invited(kind, secret) is None
        followed = desk.accept(kind, secret, PASSWORD)
        assert await refused(followed) == (SignInRefusal.INVITATION_ENDED, None)

    asyncio.run(run())


@of_both
def test_signing_out_ends_this_session_alone(desk: Desk, kind: PersonKind) -> None:
    """The other browsers stay signed in."""

    async def run() -> None:
        first, second = await desk.joined(kind), await desk.sign_in(kind)
        await desk.signing_in.sign_out(await desk.signed_in(kind, first), browser=Browser(ADDRESS))
        assert await desk.signing_in.signed_in(kind, first) is None
        await desk.person(kind, second)

    asyncio.run(run())


@of_both
def test_a_session_ends_when_it_is_not_used(desk: Desk, kind: PersonKind) -> None:
    """It is live until the last millisecond of its idle time, and not in the next."""

    async def run() -> None:
        secret = await desk.joined(kind)
        end_ms = desk.books.clock.now_ms + LIFETIMES[kind].idle_ms
        desk.books.clock.now_ms = end_ms
        assert await desk.signing_in.signed_in(kind, secret) is None
        desk.books.clock.now_ms = end_ms - 1
        await desk.person(kind, secret)
        desk.books.clock.now_ms = end_ms
        await desk.person(kind, secret)

    asyncio.run(run())


@of_both
def test_a_session_ends_after_its_whole_time_however_much_it_is_used(desk: Desk, kind: PersonKind) -> None:
    """Use alone keeps nobody signed in for ever."""
    lifetime = LIFETIMES[kind]

    async def run() -> None:
        secret = await desk.joined(kind)
        end_ms = desk.books.clock.now_ms + lifetime.whole_ms
        while desk.books.clock.now_ms < end_ms - lifetime.idle_ms:
            desk.books.clock.now_ms += lifetime.idle_ms - 1
            await desk.person(kind, secret)
        desk.books.clock.now_ms = end_ms - 1
        await desk.person(kind, secret)
        desk.books.clock.now_ms = end_ms
        assert await desk.signing_in.signed_in(kind, secret) is None

    asyncio.run(run())


@of_both
def test_a_session_in_use_is_written_once_a_minute(desk: Desk, kind: PersonKind) -> None:
    """Most requests only read."""

    async def run() -> None:
        secret = await desk.joined(kind)
        seen: list[int] = []
        for later_ms in (SEEN_EVERY_MS - 1, 1, SEEN_EVERY_MS - 1):
            desk.books.clock.now_ms += later_ms
            await desk.person(kind, secret)
            seen.append(desk.books.rows("SELECT seen_at_ms FROM sessions")[0][0] - desk.books.clock.now_ms)
        assert seen == [-(SEEN_EVERY_MS - 1), 0, -(SEEN_EVERY_MS - 1)]

    asyncio.run(run())


@of_both
def test_a_person_has_the_newest_sessions_alone(desk: Desk, kind: PersonKind) -> None:
    """A browser more than the bound ends the oldest, never the new one, also within one millisecond."""

    async def run() -> None:
        await desk.joined(other(kind))
        oldest = await desk.joined(kind)
        desk.books.clock.now_ms += 1
        secrets = [await desk.sign_in(kind) for _ in range(SESSIONS_MAX)]
        assert desk.sessions() == 1 + SESSIONS_MAX
        assert await desk.signing_in.signed_in(kind, oldest) is None
        assert all([await desk.signing_in.signed_in(kind, secret) for secret in secrets])
        last = await desk.sign_in(kind)
        await desk.person(kind, last)
        assert desk.sessions() == 1 + SESSIONS_MAX

    asyncio.run(run())


@of_both
def test_five_wrong_passwords_from_one_place_are_all(desk: Desk, kind: PersonKind) -> None:
    """Then one more is compared every three minutes, the right one too; not so from elsewhere."""

    async def run() -> None:
        await desk.joined(kind)
        for _ in range(BY_EMAIL_AND_ADDRESS.failures_max):
            assert await refused(desk.sign_in(kind, WRONG)) == (SignInRefusal.WRONG, None)
        desk.books.clock.now_ms += 60_000
        assert await refused(desk.sign_in(kind)) == (SignInRefusal.TOO_MANY, PACE_S - 60)
        await desk.sign_in(kind, address="192.0.2.2")
        desk.books.clock.now_ms += (PACE_S - 60) * 1_000 - 1
        assert await refused(desk.sign_in(kind)) == (SignInRefusal.TOO_MANY, 1)
        desk.books.clock.now_ms += 1
        assert await refused(desk.sign_in(kind, WRONG)) == (SignInRefusal.WRONG, None)
        assert await refused(desk.sign_in(kind)) == (SignInRefusal.TOO_MANY, PACE_S)
        desk.books.clock.now_ms += PACE_S * 1_000
        await desk.sign_in(kind)

    asyncio.run(run())


@of_both
def test_wrong_passwords_for_nobody_are_counted_as_for_somebody(desk: Desk, kind: PersonKind) -> None:
    """The count tells no more than the answer who is there."""

    async def run() -> None:
        for email in ("nobody@example.com", "no address"):
            answers = [
                await refused(desk.sign_in(kind, PASSWORD, email=email, address=ADDRESS))
                for _ in range(BY_EMAIL_AND_ADDRESS.failures_max + 1)
            ]
            assert answers[-2:] == [(SignInRefusal.WRONG, None), (SignInRefusal.TOO_MANY, PACE_S)]

    asyncio.run(run())


@of_both
def test_a_success_clears_what_was_wrong_before(desk: Desk, kind: PersonKind) -> None:
    """Four wrong ones, the right one, and there are five again."""

    async def run() -> None:
        await desk.joined(kind)
        for _ in range(2):
            for _ in range(BY_EMAIL_AND_ADDRESS.failures_max - 1):
                assert await refused(desk.sign_in(kind, WRONG)) == (SignInRefusal.WRONG, None)
            await desk.sign_in(kind)

    asyncio.run(run())


def test_one_place_is_bounded_whomever_it_tries(desk: Desk) -> None:
    """Addresses of one IPv6 network are one place; a success clears nothing of its count."""
    kind = PersonKind.HOLDER

    async def attempt(number: int) -> tuple[SignInRefusal, int | None]:
        email, address = f"user{number}@example.com", f"2001:db8::{number:x}"
        return await refused(desk.sign_in(kind, WRONG, email=email, address=address))

    async def run() -> None:
        await desk.joined(kind)
        for number in range(BY_ADDRESS.failures_max):
            assert await attempt(number) == (SignInRefusal.WRONG, None)
            if number == 0:
                await desk.sign_in(kind, address="2001:db8::ffff")
        pace_s = BY_ADDRESS.pace_ms // 1_000
        assert await attempt(99) == (SignInRefusal.TOO_MANY, pace_s)
        assert await refused(desk.sign_in(kind, address="2001:db8::ffff")) == (SignInRefusal.TOO_MANY, pace_s)
        await desk.sign_in(kind, address="2001:db8:0:1::1")

    asyncio.run(run())


def test_one_email_is_bounded_wherever_the_attempts_come_from(desk: Desk) -> None:
    """A hundred in an hour, from as many places."""
    kind = PersonKind.OPERATOR

    async def run() -> None:
        await desk.joined(kind)
        for number in range(BY_EMAIL.failures_max):
            assert await refused(desk.sign_in(kind, WRONG, address=f"192.0.2.{number}")) == (SignInRefusal.WRONG, None)
        assert await refused(desk.sign_in(kind, address="198.51.100.1")) == (SignInRefusal.TOO_MANY, 30)

    asyncio.run(run())


@of_both
def test_however_many_try_at_once_no_more_are_told_that_they_were_wrong(desk: Desk, kind: PersonKind) -> None:
    """All pass the first look before any is counted; the count comes before the answer."""

    async def run() -> None:
        await desk.joined(kind)
        outcomes = await asyncio.gather(
            *(desk.sign_in(kind, WRONG) for _ in range(1 + OF_LINE_MAX)), return_exceptions=True
        )
        reasons = [each.reason for each in outcomes if isinstance(each, SignInError)]
        assert len(reasons) == len(outcomes)
        assert reasons.count(SignInRefusal.WRONG) == BY_EMAIL_AND_ADDRESS.failures_max
        assert reasons.count(SignInRefusal.TOO_MANY) == len(reasons) - BY_EMAIL_AND_ADDRESS.failures_max

    asyncio.run(run())


@pytest.mark.parametrize("what", ["the password", "whether the person may sign in"])
def test_what_changes_while_a_password_is_compared_counts(books: Books, what: str) -> None:
    """A password that was right a moment ago opens nothing."""
    kind = PersonKind.OPERATOR

    class Slow(PasswordHasher):
        """Something happens while it compares."""

        def verify(self, hash: str | bytes, password: str | bytes) -> Literal[True]:  # noqa: A002 - the library's name
            if what == "the password":
                books.execute("UPDATE operators SET password = :other", other=self.hash(OTHER))
            else:
                slow.provisioning.set_operator(slow.ids[kind], status=OperatorStatus.INACTIVE)
            return super().verify(hash, password)

    async def run(desk: Desk) -> None:
        await desk.joined(kind)
        assert await refused(desk.sign_in(kind)) == (SignInRefusal.WRONG, None)
        assert books.rows("SELECT DISTINCT failures FROM sign_in_failures") == [(1,)]

    with open_desk(books, Slow(time_cost=1, memory_cost=8, parallelism=1)) as slow:
        asyncio.run(run(slow))


def test_an_attempt_too_many_computes_no_hash(desk: Desk) -> None:
    """It is answered also when no password could be compared any more."""
    kind = PersonKind.HOLDER

    async def run() -> None:
        await desk.joined(kind)
        for _ in range(BY_EMAIL_AND_ADDRESS.failures_max):
            await refused(desk.sign_in(kind, WRONG))
        desk.passwords.close()
        assert await refused(desk.sign_in(kind)) == (SignInRefusal.TOO_MANY, PACE_S)
        assert await refused(desk.sign_in(kind, address="192.0.2.2")) == (SignInRefusal.BUSY, None)

    asyncio.run(run())


@of_both
def test_an_invitation_is_good_once(desk: Desk, kind: PersonKind) -> None:
    """Of many who follow it at once one chooses the password."""

    async def run() -> None:
        token = desk.invitations[kind].token
        invited = await desk.signing_in.invited(kind, token)
        assert invited is not None
        assert invited.id == desk.ids[kind]
        assert await desk.signing_in.invited(other(kind), token) is None
        passwords = [f"a good word {number}" for number in range(4)]
        outcomes = await asyncio.gather(
            *(desk.accept(kind, token, password) for password in passwords), return_exceptions=True
        )
        (won,) = [number for number, outcome in enumerate(outcomes) if isinstance(outcome, str)]
        assert {str(each) for each in outcomes if isinstance(each, SignInError)} == {SignInRefusal.INVITATION_ENDED}
        await desk.sign_in(kind, passwords[won])
        assert await desk.signing_in.invited(kind, token) is None

    asyncio.run(run())


@of_both
def test_an_invitation_ends_after_three_days(desk: Desk, kind: PersonKind) -> None:
    """At the instant that was told with it."""

    async def run() -> None:
        invitation = desk.invitations[kind]
        assert invitation.expires_at_ms == desk.books.clock.now_ms + 3 * 86_400_000
        desk.books.clock.now_ms = invitation.expires_at_ms
        assert await desk.signing_in.invited(kind, invitation.token) is None
        followed = desk.accept(kind, invitation.token, PASSWORD)
        assert await refused(followed) == (SignInRefusal.INVITATION_ENDED, None)
        desk.books.clock.now_ms -= 1
        await desk.joined(kind)

    asyncio.run(run())


@of_both
def test_a_new_invitation_replaces_the_old(desk: Desk, kind: PersonKind) -> None:
    """Whoever has kept the old link gets nowhere."""

    async def run() -> None:
        new = desk.invite(kind)
        assert await desk.signing_in.invited(kind, desk.invitations[kind].token) is None
        assert await desk.signing_in.invited(kind, new.token) is not None

    asyncio.run(run())


def test_another_email_ends_all_that_the_old_one_opened(desk: Desk) -> None:
    """There may be another person behind it: session, link, password, second factor. The same again ends nothing."""
    kind = PersonKind.HOLDER

    async def run() -> None:
        secret = await desk.joined(kind)
        await desk.with_second_factor(kind, secret)
        old, new = EMAILS[kind], "ada@example.org"
        token = desk.invite(kind).token
        for email, is_good in ((old, True), (new, False)):
            desk.provisioning.set_account(desk.ids[kind], email=email)
            assert (await desk.signing_in.invited(kind, token) is not None) is is_good
            assert (await desk.signing_in.signed_in(kind, secret) is not None) is is_good
        for email in (old, new):
            assert await refused(desk.sign_in(kind, email=email)) == (SignInRefusal.WRONG, None)
        person = await desk.person(kind, await desk.accept(kind, desk.invite(kind).token, OTHER))
        assert (person.email, person.has_second_factor) == (new, False)

    asyncio.run(run())


@of_both
def test_following_another_invitation_sets_another_password_and_ends_all_sessions(desk: Desk, kind: PersonKind) -> None:
    """As after a password that was lost. Nobody else's sessions end."""

    async def run() -> None:
        bystander = await desk.joined(other(kind))
        before = await desk.joined(kind)
        after = await desk.accept(kind, desk.invite(kind).token, OTHER)
        assert await desk.signing_in.signed_in(kind, before) is None
        await desk.person(kind, after)
        await desk.person(other(kind), bystander)
        assert await refused(desk.sign_in(kind)) == (SignInRefusal.WRONG, None)
        await desk.sign_in(kind, OTHER)

    asyncio.run(run())


@of_both
@pytest.mark.parametrize("password", ["too short", "x" * 201])
def test_a_bad_password_does_not_use_the_invitation_up(desk: Desk, kind: PersonKind, password: str) -> None:
    """The next try may be better."""

    async def run() -> None:
        followed = desk.accept(kind, desk.invitations[kind].token, password)
        assert await refused(followed) == (SignInRefusal.BAD_PASSWORD, None)
        await desk.joined(kind)

    asyncio.run(run())


@of_both
def test_another_password_ends_the_other_sessions_and_the_invitation(desk: Desk, kind: PersonKind) -> None:
    """The session in which it was changed goes on under another secret."""

    async def run() -> None:
        elsewhere, here = await desk.joined(kind), await desk.sign_in(kind)
        invitation = desk.invite(kind)
        signed_in = await desk.signed_in(kind, here)
        new = await desk.own_access.change_password(signed_in, old=PASSWORD, new=OTHER, browser=Browser(ADDRESS))
        await desk.person(kind, new)
        assert [await desk.signing_in.signed_in(kind, secret) for secret in (elsewhere, here)] == [None, None]
        assert await desk.signing_in.invited(kind, invitation.token) is None
        assert await refused(desk.sign_in(kind)) == (SignInRefusal.WRONG, None)
        await desk.sign_in(kind, OTHER)

    asyncio.run(run())


@of_both
def test_the_old_password_is_guessed_no_more_often_than_at_the_door(desk: Desk, kind: PersonKind) -> None:
    """A browser left open is no way around the rules; what is tried in it keeps nobody out elsewhere."""

    async def run() -> None:
        here = await desk.signed_in(kind, await desk.joined(kind))

        async def change(old: str, new: str) -> tuple[SignInRefusal, int | None]:
            browser = Browser(ADDRESS)
            return await refused(desk.own_access.change_password(here, old=old, new=new, browser=browser))

        for old in (PASSWORD, WRONG):
            assert await change(old, "short") == (SignInRefusal.BAD_PASSWORD, None)
        for _ in range(BY_DEVICE.failures_max):
            assert await change(WRONG, OTHER) == (SignInRefusal.WRONG_PASSWORD, None)
        assert await change(PASSWORD, OTHER) == (SignInRefusal.TOO_MANY, BY_DEVICE.pace_ms // 1_000)
        await desk.sign_in(kind)

    asyncio.run(run())


@of_both
def test_a_person_picks_name_and_language(desk: Desk, kind: PersonKind) -> None:
    """Both are there at the next request; a name has bounds. A holder's is that of the account."""

    async def run() -> None:
        secret = await desk.joined(kind)
        person = await desk.person(kind, secret)
        await desk.own_access.rename(person, " Ada King ")
        await desk.own_access.speak(person, "fa")
        changed = await desk.person(kind, secret)
        assert (changed.name, changed.language) == ("Ada King", "fa")
        with pytest.raises(ProvisioningError):
            await desk.own_access.rename(person, " ")
        if kind is PersonKind.HOLDER:
            assert desk.provisioning.account(person.id).name == "Ada King"
        assert await desk.person(kind, secret) == changed

    asyncio.run(run())


@of_both
def test_what_a_person_changes_is_in_the_trail(desk: Desk, kind: PersonKind) -> None:
    """With who and by what way; a name with what it was; of a password that it was set, and nothing more."""

    async def run() -> None:
        here = await desk.joined(kind)
        for later_ms, act in enumerate((desk.own_access.rename, desk.own_access.rename)):
            desk.books.clock.now_ms += 1 + later_ms
            await act(await desk.person(kind, here), "Ada King")
        desk.books.clock.now_ms += 1
        signed_in = await desk.signed_in(kind, here)
        await desk.own_access.change_password(signed_in, old=PASSWORD, new=OTHER, browser=Browser(ADDRESS))

    asyncio.run(run())
    word, via = ("account", Via.HOLDER) if kind is PersonKind.HOLDER else ("operator", Via.OPERATOR)
    found = [act for act in desk.provisioning.trail().acts if act.via is via and not act.act.endswith(".sign_in")]
    old_name = "Ada" if kind is PersonKind.HOLDER else "Grace"
    assert [(act.act, act.detail) for act in found] == [
        (f"{word}.set_password", {"address": ADDRESS}),
        (f"{word}.set", {"name": [old_name, "Ada King"]}),
        (f"{word}.set_password", {"address": ADDRESS}),
    ]
    assert {act.made_by for act in found} == {EMAILS[kind]}
    assert {act.account_id or act.subject for act in found} == {desk.ids[kind]}


@of_both
def test_whatever_is_done_at_once_nobody_waits_in_a_circle(desk: Desk, kind: PersonKind) -> None:
    """People come and go while operators invite them and sign them out: each is served, or refused with a reason."""
    holder_id = desk.ids[PersonKind.HOLDER]
    acts: list[Callable[[], object]] = [lambda: desk.invite(kind), lambda: desk.provisioning.sign_out_holder(holder_id)]

    async def run() -> None:
        person = await desk.person(kind, await desk.joined(kind))
        calls: list[Coroutine[Any, Any, object]] = []
        for number in range(8):
            calls += [asyncio.to_thread(act) for act in acts]
            calls += [desk.sign_in(kind), desk.sign_in(kind, WRONG, address=f"192.0.2.{number}")]
            calls.append(desk.own_access.rename(person, f"Ada {number}"))
            calls.append(desk.accept(kind, desk.invitations[kind].token, PASSWORD))
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert [each for each in outcomes if isinstance(each, Exception) and not isinstance(each, SignInError)] == []

    asyncio.run(run())


@of_both
def test_no_secret_is_in_the_books(desk: Desk, kind: PersonKind) -> None:
    """Neither a password, nor what a cookie or a link holds, stands in any row of any table."""

    async def run() -> list[str]:
        signed_in = await desk.joined(kind)
        await refused(desk.sign_in(kind, WRONG))
        return [signed_in, await desk.sign_in(kind), desk.invite(kind).token, PASSWORD, WRONG]

    secrets = [secret.encode() for secret in asyncio.run(run())]
    with desk.books.engine.connect() as connection:
        rows = [row for table in metadata.sorted_tables for row in connection.execute(text(f"SELECT * FROM {table}"))]  # noqa: S608 - fixed names
    values = [value if isinstance(value, bytes) else str(value).encode() for row in rows for value in row]
    assert [secret for secret in secrets if any(secret in value for value in values)] == []


@sqlite_only
@of_both
def test_whoever_is_signed_in_is_so_while_nothing_can_be_written(desk: Desk, kind: PersonKind) -> None:
    """That a session was seen is not worth turning a reader away."""

    async def run() -> None:
        secret = await desk.joined(kind)
        desk.books.clock.now_ms += SEEN_EVERY_MS
        desk.books.pragmas["query_only"] = 1
        await desk.person(kind, secret)
        desk.books.pragmas["query_only"] = 0

    asyncio.run(run())


@of_both
def test_a_right_password_is_taken_in_a_known_browser_whatever_strangers_try(desk: Desk, kind: PersonKind) -> None:
    """From the same address, for the same email, from a hundred others: none of it counts for a known browser."""

    async def run() -> None:
        await desk.joined(kind)
        known = (await desk.enter(kind)).device
        for number in range(BY_EMAIL.failures_max):
            await refused(desk.sign_in(kind, WRONG, address=f"192.0.2.{number}"))
        for number in range(BY_ADDRESS.failures_max):
            await refused(desk.sign_in(kind, WRONG, email=f"user{number}@example.com"))
        assert (await refused(desk.sign_in(kind)))[0] is SignInRefusal.TOO_MANY
        assert (await desk.enter(kind, device=known)).device == known

    asyncio.run(run())


@of_both
def test_what_is_tried_in_a_known_browser_is_counted_by_itself(desk: Desk, kind: PersonKind) -> None:
    """Ten wrong ones and then one a minute; strangers, and other browsers of the person, feel nothing of it."""

    async def run() -> None:
        first, second = (await desk.joined(kind), (await desk.enter(kind)).device)[1], (await desk.enter(kind)).device
        for _ in range(BY_DEVICE.failures_max):
            assert await refused(desk.sign_in(kind, WRONG, device=first)) == (SignInRefusal.WRONG, None)
        pace_s = BY_DEVICE.pace_ms // 1_000
        assert await refused(desk.sign_in(kind, device=first)) == (SignInRefusal.TOO_MANY, pace_s)
        await desk.sign_in(kind, device=second)
        await desk.sign_in(kind)
        desk.books.clock.now_ms += BY_DEVICE.pace_ms
        await desk.sign_in(kind, device=first)

    asyncio.run(run())


def test_a_browser_is_known_to_its_person_alone(desk: Desk) -> None:
    """For another email, or in the other world, it is a stranger's."""
    kind = PersonKind.HOLDER

    async def run() -> None:
        await desk.joined(kind)
        await desk.joined(other(kind))
        known = (await desk.enter(kind)).device
        for world in KINDS:
            for _ in range(BY_EMAIL_AND_ADDRESS.failures_max):
                await refused(desk.sign_in(world, WRONG))
        await desk.sign_in(kind, device=known)
        assert (await refused(desk.sign_in(other(kind), device=known)))[0] is SignInRefusal.TOO_MANY

    asyncio.run(run())


@of_both
@pytest.mark.parametrize("how", ["another password", "an invitation", "shut out"])
def test_known_browsers_are_forgotten_with_all_else(desk: Desk, kind: PersonKind, how: str) -> None:
    """Whatever says that there may be another person; the browser in which a password is changed stays known."""

    async def run() -> None:
        here, elsewhere = (await desk.enter(kind), await desk.enter(kind)) if await desk.joined(kind) else (None, None)
        assert here is not None
        assert elsewhere is not None
        if how == "another password":
            browser = Browser(ADDRESS, device=here.device)
            signed_in = await desk.signed_in(kind, here.secret)
            await desk.own_access.change_password(signed_in, old=PASSWORD, new=OTHER, browser=browser)
        elif how == "an invitation":
            await desk.accept(kind, desk.invite(kind).token, OTHER)
        else:
            desk.shut_out(kind)
        known = {digest for (digest,) in desk.books.rows("SELECT digest FROM devices")}
        stays = how == "another password"
        assert (digest_of(here.device) in known) is stays
        assert digest_of(elsewhere.device) not in known

    asyncio.run(run())


@of_both
def test_a_second_factor_is_asked_for_after_the_password(desk: Desk, kind: PersonKind) -> None:
    """The password alone begins no session; a code does, once, and the ticket is used up with it."""

    async def run() -> None:
        await desk.with_second_factor(kind, await desk.joined(kind))
        sessions = desk.sessions()
        halfway = await desk.try_password(kind)
        assert isinstance(halfway, Halfway)
        assert desk.sessions() == sessions
        give = desk.signing_in.give_code
        browser = Browser(ADDRESS)
        for code in ("000000", "", desk.code(2), desk.code()):  # that of now was used for setting it up
            assert await refused(give(kind, halfway.ticket, code, browser=browser)) == (SignInRefusal.WRONG_CODE, None)
        entered = await give(kind, halfway.ticket, desk.code(1), browser=browser)
        assert (await desk.person(kind, entered.secret)).has_second_factor
        assert (await refused(give(kind, halfway.ticket, desk.code(1), browser=browser)))[0] is (
            SignInRefusal.CODE_TOO_LATE
        )

    asyncio.run(run())


@of_both
def test_an_invitation_is_no_way_around_the_second_factor(desk: Desk, kind: PersonKind) -> None:
    """The new password is set, and the code is asked for."""

    async def run() -> None:
        await desk.with_second_factor(kind, await desk.joined(kind))
        entry = await desk.signing_in.accept(kind, desk.invite(kind).token, OTHER, browser=Browser(ADDRESS))
        assert isinstance(entry, Halfway)
        assert desk.sessions() == 0

    asyncio.run(run())


@of_both
def test_a_code_has_to_come_in_time_and_in_its_world(desk: Desk, kind: PersonKind) -> None:
    """Ten minutes after the password it begins anew, as it does when the person is shut out meanwhile."""

    async def run() -> None:
        await desk.with_second_factor(kind, await desk.joined(kind))
        browser = Browser(ADDRESS)

        async def outcome(world: PersonKind, ticket: str) -> SignInRefusal:
            return (await refused(desk.signing_in.give_code(world, ticket, desk.code(), browser=browser)))[0]

        late, shut = [await desk.try_password(kind) for _ in range(2)]
        assert isinstance(late, Halfway)
        assert isinstance(shut, Halfway)
        assert await outcome(other(kind), late.ticket) is SignInRefusal.CODE_TOO_LATE
        assert await outcome(kind, "x" * 43) is SignInRefusal.CODE_TOO_LATE
        desk.books.clock.now_ms += PENDING_MS
        assert await outcome(kind, late.ticket) is SignInRefusal.CODE_TOO_LATE
        shut = await desk.try_password(kind)
        assert isinstance(shut, Halfway)
        desk.shut_out(kind)
        assert await outcome(kind, shut.ticket) is SignInRefusal.CODE_TOO_LATE

    asyncio.run(run())


@of_both
def test_codes_are_guessed_seldom_however_many_tickets_there_are(desk: Desk, kind: PersonKind) -> None:
    """Ten a day and then one an hour, by person; a known browser has a count of its own."""

    async def run() -> None:
        secret = await desk.joined(kind)
        known = (await desk.enter(kind)).device
        await desk.with_second_factor(kind, secret)

        async def give(code: str, device: str = "") -> Entered:
            halfway = await desk.try_password(kind, device=device)
            assert isinstance(halfway, Halfway)
            return await desk.signing_in.give_code(kind, halfway.ticket, code, browser=Browser(ADDRESS, None, device))

        for _ in range(BY_CODE.failures_max):
            assert await refused(give("000000")) == (SignInRefusal.WRONG_CODE, None)
            desk.books.clock.now_ms += PENDING_MS // PENDING_MAX
        passed_s = BY_CODE.failures_max * PENDING_MS // PENDING_MAX // 1_000
        left_s = BY_CODE.pace_ms // 1_000 - passed_s
        assert await refused(give(desk.code(1))) == (SignInRefusal.TOO_MANY, left_s)
        await give(desk.code(1), known)

    asyncio.run(run())


@of_both
def test_a_recovery_code_opens_once(desk: Desk, kind: PersonKind) -> None:
    """However it is written; the others are left."""

    async def run() -> None:
        codes = await desk.with_second_factor(kind, await desk.joined(kind))

        async def give(code: str) -> Entered:
            halfway = await desk.try_password(kind)
            assert isinstance(halfway, Halfway)
            return await desk.signing_in.give_code(kind, halfway.ticket, code, browser=Browser(ADDRESS))

        await give(f" {codes[0].replace('-', ' ')} ")
        assert (await refused(give(codes[0])))[0] is SignInRefusal.WRONG_CODE
        await give(codes[1])

    asyncio.run(run())


@of_both
def test_of_many_who_give_one_code_at_once_one_is_let_in(desk: Desk, kind: PersonKind) -> None:
    """A step is good once, also within one moment."""

    async def run() -> None:
        await desk.with_second_factor(kind, await desk.joined(kind))
        tickets = [
            entry.ticket for entry in [await desk.try_password(kind) for _ in range(4)] if isinstance(entry, Halfway)
        ]
        calls = (desk.signing_in.give_code(kind, ticket, desk.code(1), browser=Browser(ADDRESS)) for ticket in tickets)
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes].count(Entered) == 1

    asyncio.run(run())


@of_both
def test_turning_the_second_factor_off_takes_password_and_code(desk: Desk, kind: PersonKind) -> None:
    """Setting it up takes a code that its application has made, and there is one at a time."""

    async def run() -> None:
        secret = await desk.joined(kind)
        first = await desk.signed_in(kind, secret)
        set_up = desk.own_access.set_up_second_factor(
            first, secret_text(SECRET), desk.code(3), browser=Browser(ADDRESS)
        )
        assert await refused(set_up) == (SignInRefusal.WRONG_CODE, None)
        await desk.with_second_factor(kind, secret)
        with pytest.raises(ConflictError):
            await desk.with_second_factor(kind, secret)
        signed_in, browser = await desk.signed_in(kind, secret), Browser(ADDRESS)

        async def remove(password: str, code: str) -> None:
            await desk.own_access.remove_second_factor(signed_in, password=password, code=code, browser=browser)

        assert await refused(remove(WRONG, desk.code(1))) == (SignInRefusal.WRONG_PASSWORD, None)
        assert await refused(remove(PASSWORD, "000000")) == (SignInRefusal.WRONG_CODE, None)
        await remove(PASSWORD, desk.code(1))
        assert not (await desk.person(kind, secret)).has_second_factor
        await desk.sign_in(kind)

    asyncio.run(run())


@of_both
def test_codes_in_sessions_are_counted_together(desk: Desk, kind: PersonKind) -> None:
    """A new session, as a change of the password begins one, has no count of its own; nor is that done with no code."""

    async def run() -> None:
        browser = Browser(ADDRESS)
        secret = await desk.joined(kind)
        codes = await desk.with_second_factor(kind, secret)
        signed_in = await desk.signed_in(kind, secret)
        change = desk.own_access.change_password(signed_in, old=PASSWORD, new=OTHER, browser=browser)
        assert await refused(change) == (SignInRefusal.WRONG_CODE, None)
        for _ in range(BY_CODE.failures_max - 2):
            confirm = desk.own_access.confirm(signed_in, password=PASSWORD, code="000000", browser=browser)
            assert await refused(confirm) == (SignInRefusal.WRONG_CODE, None)
        change = desk.own_access.change_password(signed_in, old=PASSWORD, new=OTHER, code="000000", browser=browser)
        assert await refused(change) == (SignInRefusal.WRONG_CODE, None)
        halfway = await desk.try_password(kind)
        assert isinstance(halfway, Halfway)
        entered = await desk.signing_in.give_code(kind, halfway.ticket, desk.code(1), browser=browser)
        another = await desk.signed_in(kind, entered.secret)
        confirm = desk.own_access.confirm(another, password=PASSWORD, code=codes[0], browser=browser)
        assert (await refused(confirm))[0] is SignInRefusal.TOO_MANY

    asyncio.run(run())


@of_both
def test_a_second_factor_ends_the_sessions_that_had_none(desk: Desk, kind: PersonKind) -> None:
    """Whoever had the password alone is out, and this session stays. Where there is none, nothing is turned off."""

    async def run() -> None:
        here, thief = await desk.joined(kind), await desk.sign_in(kind)
        signed_in = await desk.signed_in(kind, here)
        with patch.object(desk.passwords, "matches", side_effect=AssertionError):
            await desk.own_access.remove_second_factor(signed_in, password=PASSWORD, code="", browser=Browser(ADDRESS))
        await desk.with_second_factor(kind, here)
        assert await desk.signing_in.signed_in(kind, thief) is None
        await desk.person(kind, here)

    asyncio.run(run())


@of_both
def test_who_has_the_password_alone_keeps_nobody_from_giving_the_code(desk: Desk, kind: PersonKind) -> None:
    """Strangers who begin again and again have to wait; a known browser begins all the same, and its code is taken."""

    async def run() -> None:
        secret = await desk.joined(kind)
        known = (await desk.enter(kind)).device
        await desk.with_second_factor(kind, secret)
        begun = await desk.try_password(kind, device=known)
        for _ in range(PENDING_MAX - 1):
            await desk.try_password(kind, address="192.0.2.66")
        stranger = desk.try_password(kind, address="192.0.2.66")
        assert await refused(stranger) == (SignInRefusal.TOO_MANY, PENDING_MS // 1_000)
        assert isinstance(begun, Halfway)
        browser = Browser(ADDRESS, None, known)
        await desk.signing_in.give_code(kind, begun.ticket, desk.code(1), browser=browser)
        for _ in range(PENDING_MAX):
            await desk.try_password(kind, address="192.0.2.66")
        again = await desk.try_password(kind, device=known)
        assert isinstance(again, Halfway)
        desk.books.clock.now_ms += 60_000
        await desk.signing_in.give_code(kind, again.ticket, desk.code(1), browser=browser)

    asyncio.run(run())


@of_both
def test_a_command_takes_a_lost_second_factor_away(desk: Desk, kind: PersonKind) -> None:
    """Then the password will do; it stands in the trail, once."""

    async def run() -> None:
        await desk.with_second_factor(kind, await desk.joined(kind))
        assert desk.provisioning.remove_second_factor(kind, desk.ids[kind])
        assert not desk.provisioning.remove_second_factor(kind, desk.ids[kind])
        await desk.sign_in(kind)

    asyncio.run(run())
    acts = [act.act for act in desk.provisioning.trail().acts]
    assert [act.endswith(".remove_second_factor") for act in acts].count(True) == 1


@of_both
def test_a_session_is_confirmed_for_a_quarter_of_an_hour(desk: Desk, kind: PersonKind) -> None:
    """From the password on that began it, or was given again; with a second factor its code is wanted too."""

    async def run() -> None:
        clock, browser = desk.books.clock, Browser(ADDRESS)
        secret = await desk.joined(kind)

        async def is_confirmed() -> bool:
            return (await desk.signed_in(kind, secret)).session.is_confirmed(clock.now_ms)

        async def confirm(password: str, code: str = "") -> None:
            signed_in = await desk.signed_in(kind, secret)
            await desk.own_access.confirm(signed_in, password=password, code=code, browser=browser)

        clock.now_ms += CONFIRMED_MS - 1
        assert await is_confirmed()
        clock.now_ms += 1
        assert not await is_confirmed()
        assert await refused(confirm(WRONG)) == (SignInRefusal.WRONG_PASSWORD, None)
        assert not await is_confirmed()
        await confirm(PASSWORD)
        assert await is_confirmed()
        await desk.with_second_factor(kind, secret)
        clock.now_ms += CONFIRMED_MS
        assert await refused(confirm(PASSWORD)) == (SignInRefusal.WRONG_CODE, None)
        assert not await is_confirmed()
        await confirm(PASSWORD, desk.code())
        assert await is_confirmed()

    asyncio.run(run())


@of_both
def test_a_person_lists_and_ends_their_own_sessions(desk: Desk, kind: PersonKind) -> None:
    """With browser and address, the last seen first; another person's are none of them."""

    async def run() -> None:
        bystander = await desk.joined(other(kind))
        first = await desk.joined(kind)
        desk.books.clock.now_ms += SEEN_EVERY_MS
        second, third = await desk.sign_in(kind), await desk.sign_in(kind, address="192.0.2.2")
        here = await desk.signed_in(kind, third)
        found = await desk.own_access.sessions(here)
        assert {(each.browser, each.address) for each in found[:2]} == {
            ("Firefox, Linux", ADDRESS),
            ("Firefox, Linux", "192.0.2.2"),
        }
        assert (found[2].browser, found[2].digest) == (None, digest_of(first))
        for secret in (second, bystander):
            digest = digest_of(secret)
            assert digest is not None
            await desk.own_access.end_session(here, digest, browser=Browser(ADDRESS))
        assert await desk.signing_in.signed_in(kind, second) is None
        await desk.person(other(kind), bystander)
        await desk.own_access.end_other_sessions(here, browser=Browser(ADDRESS))
        assert [each.digest for each in await desk.own_access.sessions(here)] == [digest_of(third)]

    asyncio.run(run())
    acts = [act for act in desk.provisioning.trail().acts if act.act.endswith(".end_sessions")]
    assert [act.detail for act in acts] == [{"sessions": 1}, {"sessions": 1}]


@of_both
def test_what_happens_at_the_door_is_in_the_log_and_the_trail(desk: Desk, kind: PersonKind) -> None:
    """Who, from where and with what outcome, and neither an email nor a secret in the log."""

    async def run() -> str:
        await desk.joined(kind)
        for _ in range(BY_EMAIL_AND_ADDRESS.failures_max + 1):
            await refused(desk.sign_in(kind, WRONG))
        secret = await desk.sign_in(kind, address="192.0.2.2")
        await desk.signing_in.sign_out(await desk.signed_in(kind, secret), browser=Browser("192.0.2.3"))
        return secret

    with capture_logs() as lines:
        secret = asyncio.run(run())
    assert [line["event"] for line in lines] == [
        "signed_in",
        *["sign_in_failed"] * BY_EMAIL_AND_ADDRESS.failures_max,
        "sign_in_limited",
        "signed_in",
        "signed_out",
    ]
    assert all(line["world"] == kind.value and line["person"] for line in lines)
    assert {line.get("address") for line in lines} == {ADDRESS, "192.0.2.2", "192.0.2.3"}
    assert not any(word in str(lines) for word in (EMAILS[kind], WRONG, PASSWORD, secret))
    acts = [act for act in desk.provisioning.trail().acts if act.act.endswith(".sign_in")]
    assert sorted((act.detail for act in acts), key=str) == [
        {"address": ADDRESS},
        {"address": "192.0.2.2", "browser": "Firefox, Linux"},
    ]
    ends = [act.detail for act in desk.provisioning.trail().acts if act.act.endswith(".end_sessions")]
    assert ends == [{"sessions": 1}]


@of_both
@pytest.mark.parametrize(
    ("password", "fault"),
    [
        ("1234567890", PasswordFault.RUN),
        ("password12", PasswordFault.COMMON),
        ("aaaaaaaaaa", PasswordFault.REPEATED),
        (" " * 10, PasswordFault.REPEATED),
        ("tarazutarazu", PasswordFault.OWN),
        ("the email", PasswordFault.OWN),
    ],
)
def test_a_password_that_is_tried_first_is_refused(
    desk: Desk, kind: PersonKind, password: str, fault: PasswordFault
) -> None:
    """By an invitation and in the settings; nothing has changed then, and the reason is told."""
    chosen = EMAILS[kind] if password == "the email" else password

    async def run() -> None:
        with pytest.raises(SignInError) as found:
            await desk.accept(kind, desk.invitations[kind].token, chosen)
        assert (found.value.reason, found.value.fault) == (SignInRefusal.BAD_PASSWORD, fault)
        signed_in = await desk.signed_in(kind, await desk.joined(kind))
        change = desk.own_access.change_password(signed_in, old=PASSWORD, new=chosen, browser=Browser(ADDRESS))
        assert await refused(change) == (SignInRefusal.BAD_PASSWORD, None)

    asyncio.run(run())
