"""How account holders sign in, in the books."""

import pytest
from sqlalchemy.exc import IntegrityError

from tarazu.store.engine import transaction
from tarazu.store.logins import HolderLogin, find_login, set_login_language, set_login_password
from tests.support.books import Books
from tests.support.values import NOON_MS, make_account

pytestmark = pytest.mark.both_stores


def test_a_login_begins_with_its_password(books: Books) -> None:
    """A language before it is kept nowhere; another password leaves the language as it is."""
    books.add(make_account(), make_account(id="acc_2"))
    with transaction(books.engine) as connection:
        set_login_language(connection, "acc_1", "en")
        assert find_login(connection, "acc_1") is None
        set_login_password(connection, "acc_1", "$one", NOON_MS)
        set_login_language(connection, "acc_1", "fa")
        set_login_password(connection, "acc_1", "$two", NOON_MS + 1)
        assert find_login(connection, "acc_1") == HolderLogin(password="$two", language="fa")
        assert find_login(connection, "acc_2") is None
    assert books.rows("SELECT changed_at_ms FROM logins") == [(NOON_MS + 1,)]


def test_a_login_shows_nobody_its_hash() -> None:
    """It may stand in an error's text."""
    assert "$hash" not in repr(HolderLogin(password="$hash", language=None))


def test_a_login_needs_its_account(books: Books) -> None:
    """The database refuses an orphan."""
    with pytest.raises(IntegrityError), transaction(books.engine) as connection:
        set_login_password(connection, "acc_1", "$one", NOON_MS)
