"""Values of who signs in, for tests, with defaults: a test names only what its claim is about."""

from typing import Any

from msgspec.structs import replace

from tarazu.domain.admin_tokens import AdminToken, Scope
from tarazu.domain.people import Operator, OperatorStatus, PersonKind
from tarazu.domain.sessions import Session, begin_session
from tests.support.values import NOON_MS

IDS = {PersonKind.HOLDER: "acc_1", PersonKind.OPERATOR: "opr_1"}


def digest(number: int) -> bytes:
    """Make digest `number`."""
    return number.to_bytes(32, "big")


def make_operator(**changes: Any) -> Operator:
    """Make operator `opr_1`, without a password."""
    operator = Operator(
        id="opr_1",
        email="grace@example.com",
        name="Grace",
        status=OperatorStatus.ACTIVE,
        has_password=False,
        language=None,
        created_at_ms=NOON_MS,
    )
    return replace(operator, **changes)


def make_session(number: int, kind: PersonKind = PersonKind.HOLDER, now_ms: int = NOON_MS) -> Session:
    """Make session `number`, of the holder of `acc_1` or of the operator `opr_1`."""
    return begin_session(digest(number), kind, IDS[kind], now_ms)


def make_admin_token(**changes: Any) -> AdminToken:
    """Make token `tok_1`, with which one may look, for ever."""
    token = AdminToken(
        id="tok_1",
        name="shop",
        digest=digest(1),
        scopes=(Scope.READ,),
        made_by="tests",
        created_at_ms=NOON_MS,
        expires_at_ms=None,
        revoked_at_ms=None,
    )
    return replace(token, **changes)
