"""Keys in the books: added, found, ended, guarded."""

from pathlib import Path

import pytest
from sqlalchemy.exc import IntegrityError

from tarazu.domain.accounts import Window
from tarazu.store.engine import transaction
from tarazu.store.keys import find_key, list_keys, revoke_key, succeed_key
from tests.support.books import Books, sqlite_only
from tests.support.values import NOON_MS, key_text, make_account, make_key

pytestmark = pytest.mark.both_stores


@pytest.mark.parametrize("models", [None, (), ("small",), ("org/model:1.5", 'odd"id', "*")])
def test_a_key_reads_back_as_it_was_written(books: Books, models: tuple[str, ...] | None) -> None:
    """Every field; no list of models and an empty one are two things."""
    key = make_key(
        models=models,
        limit_per_minute=5,
        expires_at_ms=NOON_MS + 1,
        revoked_at_ms=NOON_MS + 2,
        window=Window(3, 4),
    )
    books.add(make_account(), key, make_key(2))
    assert (books.key(1), books.key(2)) == (key, make_key(2))


def test_an_unknown_key_is_none(books: Books) -> None:
    """Not an error."""
    with transaction(books.engine, read_only=True) as connection:
        assert find_key(connection, "key_unknown") is None


def test_keys_are_listed_for_their_account_oldest_first(books: Books) -> None:
    """Also those that have ended, and none of another account."""
    later, ended = make_key(1, created_at_ms=NOON_MS + 1), make_key(2, revoked_at_ms=NOON_MS)
    books.add(make_account(), make_account(id="acc_2"), later, ended, make_key(3, account_id="acc_2"))
    with transaction(books.engine, read_only=True) as connection:
        assert list_keys(connection, "acc_1") == [ended, later]
        assert list_keys(connection, "acc_3") == []


def test_the_first_revocation_stands(books: Books) -> None:
    """Revoking again does not move the time."""
    books.add(make_account(), make_key(1), make_key(2))
    with transaction(books.engine) as connection:
        revoke_key(connection, make_key(1).id, NOON_MS)
        revoke_key(connection, make_key(1).id, NOON_MS + 1)
    assert (books.key(1).revoked_at_ms, books.key(2).revoked_at_ms) == (NOON_MS, None)


@pytest.mark.parametrize(
    ("expires_at_ms", "grace_until_ms", "ends_at_ms"),
    [(None, NOON_MS, NOON_MS), (NOON_MS + 5, NOON_MS, NOON_MS), (NOON_MS - 5, NOON_MS, NOON_MS - 5)],
)
def test_an_expiry_never_lengthens_the_life_of_a_key(
    books: Books, expires_at_ms: int | None, grace_until_ms: int, ends_at_ms: int
) -> None:
    """A grace period given at a replacement is no way around an expiry."""
    books.add(make_account(), make_key(expires_at_ms=expires_at_ms))
    with transaction(books.engine) as connection:
        succeed_key(connection, make_key().id, "key_2", grace_until_ms)
    assert (books.key().expires_at_ms, books.key().successor_id) == (ends_at_ms, "key_2")


@sqlite_only
def test_no_secret_is_stored(books: Books, tmp_path: Path) -> None:
    """Neither the key nor its secret part stands in any file of the database."""
    books.add(make_account(), make_key())
    for path in tmp_path.iterdir():
        content = path.read_bytes()
        assert key_text().encode() not in content
        assert key_text()[16:48].encode() not in content


def test_a_key_needs_its_account_and_a_new_id(books: Books) -> None:
    """The database refuses an orphan and a double."""
    with pytest.raises(IntegrityError):
        books.add(make_key(account_id="acc_unknown"))
    books.add(make_account(), make_key())
    with pytest.raises(IntegrityError):
        books.add(make_key(name="again"))


@pytest.mark.parametrize("change", ["limit_per_minute = 0", "window_taken = -1", "digest = NULL", "account_id = 'x'"])
def test_the_database_refuses_what_no_key_may_be(books: Books, change: str) -> None:
    """The last guard, below all code."""
    books.add(make_account(), make_key())
    with pytest.raises(IntegrityError):
        books.execute(f"UPDATE keys SET {change}")  # noqa: S608 - the list above
