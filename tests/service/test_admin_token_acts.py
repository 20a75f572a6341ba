"""Issuing and revoking tokens of the admin API."""

from collections.abc import Sequence

import pytest

from tarazu.domain.admin_tokens import Scope
from tarazu.domain.keys import ADMIN_TOKEN, parse
from tarazu.service.checks import EXPIRY_S_MAX
from tarazu.service.provisioning import Provisioning
from tarazu.service.provisioning_errors import NotThereError, ProvisioningError
from tests.support.books import Books
from tests.support.values import NOON_MS

pytestmark = pytest.mark.both_stores


@pytest.fixture
def provisioning(books: Books) -> Provisioning:
    """Act on them."""
    return Provisioning(books.engine, books.catalogue, books.clock, by="tests")


def test_a_token_is_shown_once(books: Books, provisioning: Provisioning) -> None:
    """It is a well-formed one, the books keep its digest, and no trace has its secret."""
    issued = provisioning.create_admin_token(name=" shop ", scopes=["credits", "read"], expires_in_s=90)
    presented = parse(issued.secret, ADMIN_TOKEN)
    assert presented is not None
    assert (presented.id, presented.digest) == (issued.token.id, issued.token.digest)
    assert provisioning.admin_tokens() == [issued.token]
    assert (issued.token.name, issued.token.scopes) == ("shop", (Scope.READ, Scope.CREDITS))
    assert (issued.token.made_by, issued.token.expires_at_ms) == ("tests", NOON_MS + 90_000)
    secret = issued.secret[16:48]
    assert secret not in repr(issued)
    assert secret not in repr(books.dump())


@pytest.mark.parametrize("scopes", [[], ["write"], ["read", "READ"], [""]])
def test_a_token_needs_scopes_that_there_are(provisioning: Provisioning, scopes: Sequence[str]) -> None:
    """The message names them all."""
    with pytest.raises(ProvisioningError, match="read, accounts, credits"):
        provisioning.create_admin_token(name="shop", scopes=scopes)
    assert provisioning.admin_tokens() == []


@pytest.mark.parametrize("expires_in_s", [0, -1, EXPIRY_S_MAX + 1, 10**30])
def test_an_expiry_has_bounds(provisioning: Provisioning, expires_in_s: int) -> None:
    """Whatever a program asks for, it is a message and no failure."""
    with pytest.raises(ProvisioningError, match="expiry"):
        provisioning.create_admin_token(name="shop", scopes=["read"], expires_in_s=expires_in_s)
    provisioning.create_admin_token(name="shop", scopes=["read"], expires_in_s=EXPIRY_S_MAX)


def test_a_revoked_token_stays_revoked(books: Books, provisioning: Provisioning) -> None:
    """The first time stands and is in the trail, once; what is not there cannot be revoked."""
    token = provisioning.create_admin_token(name="shop", scopes=["read"]).token
    for _ in range(2):
        books.clock.now_ms += 1
        assert provisioning.revoke_admin_token(token.id).revoked_at_ms == NOON_MS + 1
    with pytest.raises(NotThereError):
        provisioning.revoke_admin_token("tok_x")
    assert [(act.act, act.subject, act.detail) for act in provisioning.trail().acts] == [
        ("token.revoke", token.id, {"name": "shop"}),
        ("token.create", token.id, {"name": "shop", "scopes": ["read"]}),
    ]
