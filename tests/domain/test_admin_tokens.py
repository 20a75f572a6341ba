"""What an admin token lets a program do."""

from typing import Any

import pytest

from tarazu.domain.admin_tokens import Scope
from tests.support.people_values import make_admin_token
from tests.support.values import NOON_MS


@pytest.mark.parametrize(
    ("scopes", "allowed"),
    [
        ((Scope.READ,), {Scope.READ}),
        ((Scope.ACCOUNTS,), {Scope.READ, Scope.ACCOUNTS}),
        ((Scope.CREDITS,), {Scope.READ, Scope.CREDITS}),
        (tuple(Scope), set(Scope)),
    ],
)
def test_a_token_allows_its_scopes_and_to_read(scopes: tuple[Scope, ...], allowed: set[Scope]) -> None:
    """Whoever may change something may look; nothing else follows from anything."""
    assert {scope for scope in Scope if make_admin_token(scopes=scopes).allows(scope)} == allowed


@pytest.mark.parametrize(
    ("ends", "is_active"),
    [
        ({}, True),
        ({"expires_at_ms": NOON_MS + 1}, True),
        ({"expires_at_ms": NOON_MS}, False),
        ({"revoked_at_ms": NOON_MS}, False),
        ({"revoked_at_ms": NOON_MS, "expires_at_ms": NOON_MS + 1}, False),
    ],
)
def test_a_token_is_active_until_it_expires_or_is_revoked(ends: dict[str, Any], is_active: bool) -> None:  # noqa: FBT001 - a case
    """At the instant of its end it is none any more."""
    assert make_admin_token(**ends).is_active(NOON_MS) is is_active
