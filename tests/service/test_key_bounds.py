"""What a holder makes for good is bounded: keys, new ones in an hour, acts in the trail. Revoking never is."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from msgspec.structs import replace

from tarazu.domain.bounds import Bounds
from tarazu.domain.people import Person, PersonKind
from tarazu.service.own_access import OWN_CHANGES_HOURLY_MAX
from tarazu.service.pace import HOUR_MS
from tarazu.service.personal_acts import OFTEN_HOURLY_MAX
from tarazu.service.proving import Browser
from tarazu.service.provisioning import Provisioning
from tarazu.service.provisioning_errors import ConflictError, ProvisioningError
from tarazu.store.trail import Via
from tests.support.books import Books
from tests.support.people import ADDRESS, OTHER, PASSWORD, open_desk
from tests.support.values import make_account

pytestmark = pytest.mark.both_stores

KEYS, HOURLY = 4, 6


@pytest.fixture
def books(books: Books) -> Books:
    """Fill the books with one account, whose holder may have few keys."""
    books.catalogue = replace(books.catalogue, bounds=Bounds(keys=KEYS, new_keys_hourly=HOURLY))
    books.add(make_account())
    return books


def acts(books: Books, via: Via = Via.HOLDER) -> Provisioning:
    """Act on the books by this way."""
    return Provisioning(books.engine, books.catalogue, books.clock, by="ada@example.com", via=via)


def make(books: Books, via: Via = Via.HOLDER) -> str:
    """Make a key; answer with its id."""
    return acts(books, via).create_key("acc_1", name="laptop").key.id


def test_many_at_once_make_as_many_as_may_be(books: Books) -> None:
    """It is decided under the account's lock, so none is made beyond the bound; the refusal says what to do."""

    def try_it(_: int) -> str | None:
        try:
            make(books)
        except ConflictError as error:
            return str(error)
        return None

    with ThreadPoolExecutor(4) as threads:
        refusals = list(threads.map(try_it, range(KEYS + 8)))
    assert refusals.count(None) == KEYS
    told = "An account may have 4 keys that have not ended, and this one has as many. Revoke one first."
    assert set(refusals) == {None, told}
    assert books.rows("SELECT count(*) FROM keys") == [(KEYS,)]


def test_keys_that_have_ended_leave_room(books: Books) -> None:
    """Revoked or expired. One that is replaced at once leaves its own; with a time for both there must be room."""
    first, second, *_ = [make(books) for _ in range(KEYS)]
    with pytest.raises(ConflictError, match="Revoke one first"):
        acts(books).replace_key(first, grace_s=60)
    replaced = acts(books).replace_key(first)
    with pytest.raises(ConflictError, match="Revoke one first"):
        make(books)
    acts(books).revoke_key(second)
    acts(books).replace_key(replaced.key.id, grace_s=60)
    with pytest.raises(ConflictError, match="Revoke one first"):
        make(books)
    books.clock.now_ms += HOUR_MS
    make(books)


def test_an_hour_has_so_many_new_keys(books: Books) -> None:
    """Replacements too, also where others were revoked; the refusal tells the minutes, after which there are more."""
    for _ in range(HOURLY):
        key = make(books)
        acts(books).revoke_key(key)
        books.clock.now_ms += 60_000
    left = "6 times within an hour, and may not be done more often. Minutes to wait: 54."
    with pytest.raises(ConflictError, match=left):
        make(books)
    books.clock.now_ms += 54 * 60_000 - 1
    with pytest.raises(ConflictError, match="Minutes to wait: 1"):
        make(books)
    books.clock.now_ms += 1
    kept = make(books)
    with pytest.raises(ConflictError, match="Minutes to wait: 1"):
        acts(books).replace_key(kept)
    acts(books).revoke_key(kept)
    assert acts(books).key(kept).revoked_at_ms is not None


@pytest.mark.parametrize("via", [Via.COMMAND, Via.OPERATOR, Via.TOKEN])
def test_operators_may_go_beyond_and_are_told(books: Books, via: Via) -> None:
    """By each way; what they have made counts for the holder, who can make none then."""
    for number in range(HOURLY + KEYS):
        live_keys = acts(books, via).create_key("acc_1", name="shop").live_keys
        assert live_keys == (number + 1 if number >= KEYS else None)
    with pytest.raises(ConflictError, match="Revoke one first"):
        make(books)


def test_another_account_is_not_held_up(books: Books) -> None:
    """Bounds are by account."""
    books.add(make_account(id="acc_2"))
    for _ in range(KEYS):
        make(books)
    assert acts(books).create_key("acc_2", name="other").live_keys is None


def test_a_holder_cannot_fill_the_trail_with_names(books: Books) -> None:
    """So many changes in an hour; the language, which leaves no act, may change."""
    with open_desk(books) as desk:
        person = Person(
            kind=PersonKind.HOLDER,
            id=desk.ids[PersonKind.HOLDER],
            name="Ada",
            email="ada@example.com",
            language=None,
        )

        async def run() -> None:
            await desk.joined(PersonKind.HOLDER)
            for number in range(OWN_CHANGES_HOURLY_MAX):
                await desk.own_access.rename(person, f"Ada {number}")
            with pytest.raises(ProvisioningError, match="Minutes to wait: 60"):
                await desk.own_access.rename(person, "Ada")
            await desk.own_access.speak(person, "fa")
            books.clock.now_ms += HOUR_MS
            await desk.own_access.rename(person, "Ada")

        asyncio.run(run())


def test_a_holder_cannot_fill_the_trail_with_passwords_and_second_factors(books: Books) -> None:
    """So many of each in an hour; the password stays what it was."""
    kind = PersonKind.HOLDER
    with open_desk(books) as desk:

        async def run() -> None:
            secret = await desk.joined(kind)
            passwords = [PASSWORD, OTHER]
            for _ in range(OWN_CHANGES_HOURLY_MAX - 1):  # the first was set by the invitation
                old, new = passwords
                signed_in = await desk.signed_in(kind, secret)
                secret = await desk.own_access.change_password(signed_in, old=old, new=new, browser=Browser(ADDRESS))
                passwords.reverse()
            signed_in = await desk.signed_in(kind, secret)
            old, new = passwords
            with pytest.raises(ConflictError, match="Minutes to wait: 60"):
                await desk.own_access.change_password(signed_in, old=old, new=new, browser=Browser(ADDRESS))
            await desk.sign_in(kind, old)

        asyncio.run(run())


def test_a_holder_cannot_fill_the_trail_by_coming_and_going(books: Books) -> None:
    """Nobody is kept out for it: beyond so many in an hour what is in the log is no more in the trail."""
    kind = PersonKind.HOLDER
    with open_desk(books) as desk:

        async def run() -> None:
            await desk.joined(kind)
            for _ in range(OFTEN_HOURLY_MAX):
                secret = await desk.sign_in(kind)
                await desk.signing_in.sign_out(await desk.signed_in(kind, secret), browser=Browser(ADDRESS))
            books.clock.now_ms += HOUR_MS
            await desk.sign_in(kind)

        asyncio.run(run())
    (counted,) = books.rows("SELECT count(*) FROM acts WHERE act IN ('account.sign_in', 'account.end_sessions')")
    assert counted == (OFTEN_HOURLY_MAX + 1,)
