"""The admin API's tokens in the books."""

import pytest
from sqlalchemy.exc import IntegrityError

from tarazu.domain.admin_tokens import AdminToken, Scope
from tarazu.store.admin_tokens import find_admin_token, insert_admin_token, list_admin_tokens, revoke_admin_token
from tarazu.store.engine import transaction
from tests.support.books import Books
from tests.support.people_values import make_admin_token
from tests.support.values import NOON_MS

pytestmark = pytest.mark.both_stores


def add(books: Books, *tokens: AdminToken) -> None:
    """Write tokens."""
    with transaction(books.engine) as connection:
        for token in tokens:
            insert_admin_token(connection, token)


@pytest.mark.parametrize("scopes", [(Scope.READ,), tuple(Scope)])
def test_a_token_reads_back_as_it_was_written(books: Books, scopes: tuple[Scope, ...]) -> None:
    """Every field, and its scopes in their order."""
    token = make_admin_token(scopes=scopes, expires_at_ms=NOON_MS + 1, revoked_at_ms=NOON_MS + 2)
    add(books, token)
    with transaction(books.engine, read_only=True) as connection:
        assert find_admin_token(connection, "tok_1") == token
        assert find_admin_token(connection, "tok_2") is None


def test_tokens_are_listed_oldest_first(books: Books) -> None:
    """Also those that have ended."""
    later, ended = make_admin_token(created_at_ms=NOON_MS + 1), make_admin_token(id="tok_2", revoked_at_ms=NOON_MS)
    add(books, later, ended)
    with transaction(books.engine, read_only=True) as connection:
        assert list_admin_tokens(connection) == [ended, later]


def test_the_first_revocation_stands(books: Books) -> None:
    """Revoking again does not move the time, and tells so; another token works on."""
    add(books, make_admin_token(), make_admin_token(id="tok_2"))
    with transaction(books.engine) as connection:
        assert revoke_admin_token(connection, "tok_1", NOON_MS)
        assert not revoke_admin_token(connection, "tok_1", NOON_MS + 1)
        assert not revoke_admin_token(connection, "tok_3", NOON_MS)
        revoked = [token.revoked_at_ms for token in list_admin_tokens(connection)]
    assert revoked == [NOON_MS, None]


def test_no_two_tokens_share_an_id(books: Books) -> None:
    """The database refuses the second."""
    add(books, make_admin_token())
    with pytest.raises(IntegrityError):
        add(books, make_admin_token())
