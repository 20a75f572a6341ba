"""Who signs in: the holders of accounts, and the operators of the shop, as rows of the books."""

from enum import StrEnum

from msgspec import Struct

from tarazu.domain.accounts import Account


class PersonKind(StrEnum):
    """The two worlds of people. Nobody of the one is anybody in the other."""

    HOLDER = "holder"
    OPERATOR = "operator"


class Person(Struct, frozen=True, kw_only=True):
    """A person who may sign in. `id` is that of the account or operator; `language` is None until one is picked."""

    kind: PersonKind
    id: str
    name: str
    email: str
    language: str | None
    has_second_factor: bool = False
    account: Account | None = None
    """Of a holder, as it stood when it was read."""


class OperatorStatus(StrEnum):
    """Whether an operator may open the operators' pages; only `active` may."""

    ACTIVE = "active"
    INACTIVE = "inactive"


class Operator(Struct, frozen=True, kw_only=True):
    """One operator. Until `has_password`, the first invitation has not been followed."""

    id: str
    email: str
    name: str
    status: OperatorStatus
    has_password: bool
    language: str | None
    created_at_ms: int
