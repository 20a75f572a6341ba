"""What an admin token allows."""

from collections.abc import Collection
from enum import StrEnum


class AdminScope(StrEnum):
    """One part of what operators do. Whoever may change may also read."""

    READ = "read"
    ACCOUNTS = "accounts"
    CREDITS = "credits"


def allows(scopes: Collection[AdminScope], needed: AdminScope) -> bool:
    """Tell whether a token with these scopes may do what needs that one."""
    return needed in scopes or (needed is AdminScope.READ and bool(scopes))
